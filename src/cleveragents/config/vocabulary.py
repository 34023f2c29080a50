"""Words that mean something in a configuration, and so are nobody's name."""

from __future__ import annotations

INPUT, OUTPUT = "input", "output"

FAIL, SKIP = "fail", "skip"
"""What ``on_error`` may say; anything else is the name of an agent."""
