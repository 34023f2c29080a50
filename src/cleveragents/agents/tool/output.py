"""What code puts out, bounded: what it prints, and the words of its errors."""

from __future__ import annotations

from cleveragents.agents.tool.limits import PRINT_LIMIT
from cleveragents.values.text import clean_text

_LONGEST_REASON = 500


class Printed:
    """What code printed: the first ``PRINT_LIMIT`` characters, and a mark for what was cut."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._room = PRINT_LIMIT
        self._cut = 0

    def write(self, text: str) -> None:
        """Keep as much of ``text`` as there is room for."""
        kept = text[: self._room]
        if kept:
            self._pieces.append(kept)
            self._room -= len(kept)
        self._cut += len(text) - len(kept)

    @property
    def text(self) -> str:
        """All that was kept."""
        mark = f"\n… {self._cut:,} more characters were cut\n" if self._cut else ""
        return clean_text("".join(self._pieces)) + mark


def one_line(text: str) -> str:
    """``text`` of code's own making as part of an error's line: no line breaks, and not endless."""
    line = " ".join(clean_text(text[: 4 * _LONGEST_REASON]).split())
    return line if len(line) <= _LONGEST_REASON else line[:_LONGEST_REASON] + "…"
