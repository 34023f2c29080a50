"""Text that is shown on a terminal while it arrives in pieces."""

from __future__ import annotations

from cleveragents.values.directions import LINE_ENDS, first_direction, reads_from_right
from cleveragents.values.text import terminal_text

_HELD = 2000
"""Characters that are held back at most."""


class LiveText:
    """Makes pieces of a text safe for a terminal as the whole text would be.

    From its first direction mark on, a line is held back until its end, for only then is it known which could deceive;
    so is a carriage return, which may be the first half of a line's end.
    """

    def __init__(self) -> None:
        self._held = ""
        self._from_right = False  # whether the line so far has a letter that is written from right to left

    def add(self, piece: str) -> str:
        """What can be shown now that ``piece`` has arrived."""
        return self._release(self._held + piece, final=False)

    def end(self) -> str:
        """What was held back."""
        return self._release(self._held, final=True)

    def _release(self, text: str, *, final: bool) -> str:
        size = len(text) if final else self._ready(text)
        ready, self._held = text[:size], text[size:]
        shown = terminal_text(ready, from_right=self._from_right)
        *before, line = LINE_ENDS.split(ready)
        self._from_right = reads_from_right(line) or (self._from_right and not before)
        return shown

    def _ready(self, text: str) -> int:
        """How much of ``text`` can be judged already."""
        end = len(text) - text.endswith("\r")
        start = text.rfind("\n") + 1
        mark = first_direction(text, start)
        return end if mark is None or end - mark > _HELD else mark
