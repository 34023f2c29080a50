"""Agents: what they are (base), how an llm and a tool are one (llm, tool), and how a file's agents are built."""
