"""Reactive streams that join agents into a network."""
