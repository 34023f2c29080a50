"""Direction marks: which of them a real text of right to left needs, and which could deceive who reads it.

As in Unicode's rules for text of both directions (UAX 9), what opens a direction ends with its line at the latest.
"""

from __future__ import annotations

import re
from unicodedata import bidirectional

DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""Every direction mark, as part of a pattern."""
LINE_ENDS = re.compile("([\n\u2028\u2029])")
"""What ends a line, and every direction opened on it."""

_DIRECTION = re.compile(f"[{DIRECTIONS}]")
_LEFT_MARK, _RIGHT_MARKS = "\u200e", "\u200f\u061c"
_RIGHT_EMBEDDING, _OVERRIDES, _END_OF_EMBEDDING = "\u202b", "\u202d\u202e", "\u202c"
_EMBEDDINGS = "\u202a\u202b" + _OVERRIDES
_RIGHT_ISOLATE, _ISOLATES, _END_OF_ISOLATE = "\u2067", "\u2066\u2067\u2068", "\u2069"
_RIGHT_TO_LEFT = {"R", "AL"}


def first_direction(text: str, start: int) -> int | None:
    """Where the first direction mark of ``text`` from ``start`` on is; None when there is none."""
    match = _DIRECTION.search(text, start)
    return match and match.start()


def reads_from_right(text: str) -> bool:
    """Whether there is a letter of a script that is written from right to left in ``text``."""
    return not text.isascii() and any(
        bidirectional(letter) in _RIGHT_TO_LEFT for letter in text if letter not in _RIGHT_MARKS
    )


def deceptive(line: str, *, from_right: bool = False) -> set[int]:
    """The places in ``line`` of direction marks that could deceive.

    That is an override, what is opened and not closed, or closed and not open, and, on a line without a letter that is
    written from right to left, what has such letters as its only use. ``from_right`` says that one stood before.
    """
    from_right = from_right or reads_from_right(line)
    found: set[int] = set()
    opened: list[int] = []
    isolates = 0
    for match in _DIRECTION.finditer(line):
        place, mark = match.start(), match[0]
        if mark in _ISOLATES + _EMBEDDINGS:
            opened.append(place)
            isolates += mark in _ISOLATES
        elif mark == _END_OF_ISOLATE and isolates:
            # It ends the embeddings left open within it as well.
            while line[start := opened.pop()] not in _ISOLATES:
                found.add(start)
            _settle(line, start, place, found, from_right=from_right)
            isolates -= 1
        elif mark == _END_OF_EMBEDDING and opened and line[opened[-1]] in _EMBEDDINGS:
            # Within an isolate it closes nothing that was opened outside.
            _settle(line, opened.pop(), place, found, from_right=from_right)
        elif mark != _LEFT_MARK and not (from_right and mark in _RIGHT_MARKS):
            found.add(place)
    return found.union(opened)


def _settle(line: str, start: int, end: int, found: set[int], *, from_right: bool) -> None:
    """Decide on a pair of marks at once, so that what is left is in pairs."""
    mark = line[start]
    if mark in _OVERRIDES or (mark in _RIGHT_EMBEDDING + _RIGHT_ISOLATE and not from_right):
        found.update((start, end))
