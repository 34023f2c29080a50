"""``cleveragents run``: the command, how its run is shown, and many prompts at once."""
