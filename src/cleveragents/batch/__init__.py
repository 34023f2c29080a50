"""Many prompts through one network: what becomes of each, in the order of the input, and the file it is kept in."""
