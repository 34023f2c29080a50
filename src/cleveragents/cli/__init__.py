"""The command line, thin: parse, call, print. One file or package a group; ``kit`` has what they share."""
