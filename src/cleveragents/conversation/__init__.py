"""What was said: messages, their content, turns, prompts and usage. Pure."""
