"""Calls of tools as people are shown them: what was called with what, and the beginning of what came back."""

from __future__ import annotations

from cleveragents.conversation.arguments import Arguments
from cleveragents.values.json import dump_json

_LONGEST_VALUE = 80
_LONGEST_LINE = 200


def call_line(tool: str, arguments: Arguments) -> str:
    """Such as ``→ price(article="tea", count=2)``; arguments that could not be read stand there as they came."""
    if isinstance(arguments, dict):
        given = ", ".join(f"{name}={_short(dump_json(value), _LONGEST_VALUE)}" for name, value in arguments.items())
    else:
        given = arguments
    return f"→ {_first_line(tool)}({_short(' '.join(given.split()), _LONGEST_LINE)})"


def result_line(text: str, *, failed: bool) -> str:
    """The first line of a result that says something, marked when the call ``failed``."""
    return f"{'failed: ' if failed else ''}{_first_line(text)}"


def _first_line(text: str) -> str:
    text = text.strip()
    line = next(iter(text[: _LONGEST_LINE + 1].splitlines()), "")[:_LONGEST_LINE]
    return line if len(line) == len(text) else f"{line}…"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"
