"""Agents that ask an llm."""
