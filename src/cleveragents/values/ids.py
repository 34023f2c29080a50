"""ULIDs: ids that sort by the time they were made."""

from __future__ import annotations

import os
import re
import threading
import time

from cleveragents.errors import InvalidIdError

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

_ULID_LENGTH = 26

_ULID = re.compile(rf"[0-7][{_CROCKFORD}]{{25}}")


def parse_ulid(text: str) -> str:
    """A ULID in its stored form (upper case). Raises InvalidIdError for anything else.

    Format: 26 characters of Crockford's base 32 without I, L, O, U, the first at most 7
    (https://github.com/ulid/spec).
    """
    if not isinstance(text, str) or not text.isascii() or not _ULID.fullmatch(text.upper()):
        raise InvalidIdError(f"{str(text)[:60]!r} is not a valid id (a ULID: 26 letters and digits)")
    return text.upper()


def is_ulid(text: str) -> bool:
    """Whether ``text`` is a whole ULID in its stored form."""
    return _ULID.fullmatch(text) is not None


def parse_ulid_prefix(text: str) -> str:
    """The beginning of a ULID, at most all of it, in its stored form. Raises InvalidIdError for anything else."""
    try:
        return parse_ulid(text.ljust(_ULID_LENGTH, "0"))[: len(text)] if text else parse_ulid(text)
    except InvalidIdError:
        raise InvalidIdError(
            f"{text[:60]!r} is not a valid id, nor the beginning of one (a ULID: 26 letters and digits)"
        ) from None


class _UlidSource:
    """New ULIDs, strictly increasing within this process even when the clock stands still or steps back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def next(self) -> str:
        with self._lock:
            value = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
            self._last = value if value > self._last else self._last + 1
            number = self._last
        return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


new_ulid = _UlidSource().next
