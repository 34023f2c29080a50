"""A turn: one prompt and what comes of it, kept as it happens."""
