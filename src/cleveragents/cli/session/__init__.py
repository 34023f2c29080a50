"""``cleveragents session``: the group, and its commands in files of their own."""
