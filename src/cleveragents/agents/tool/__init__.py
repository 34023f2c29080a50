"""Agents that are Python code: in a sandbox, or, where the user asks for it, outside of it."""
