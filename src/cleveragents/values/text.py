"""Text as it is kept, and as a terminal is shown it."""

from __future__ import annotations

import re
from typing import Any

from cleveragents.errors import SessionValidationError
from cleveragents.values.directions import DIRECTIONS, LINE_ENDS, deceptive


def clean_text(text: str) -> str:
    """``text`` with surrogate pairs joined and each lone surrogate replaced by U+FFFD; all else unchanged."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


_FIRST_WORDS, _LOOKED_AT = 80, 400

# C0 but tab and newline, DEL, C1.
_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_CONTROL = re.compile(f"[{_CONTROLS}]")
UNSAFE = re.compile(f"[{_CONTROLS}{DIRECTIONS}]")
"""What a terminal obeys: control characters, and marks of all directions."""


def terminal_text(text: str, *, from_right: bool = False) -> str:
    r"""``text`` for a terminal: control characters become visible escapes such as ``\x1b``.

    So do direction marks where they could deceive; those that text from right to left needs stay. ``from_right`` says
    that a letter of such text stands before on the first line.
    """
    if text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    if UNSAFE.search(text) is None:
        return text
    shown = []
    for line in LINE_ENDS.split(text):
        places = deceptive(line, from_right=from_right)
        marked = "".join(_escape(mark) if place in places else mark for place, mark in enumerate(line))
        shown.append(_CONTROL.sub(lambda match: _escape(match[0]), marked if places else line))
        from_right = False
    return "".join(shown)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004 - the width of the escape


def first_words(text: str) -> str | None:
    """The beginning of ``text`` in one line of at most 80 characters; None where there is nothing to read."""
    line = " ".join(_CONTROL.sub(" ", text[:_LOOKED_AT]).split())
    return (line if len(line) <= _FIRST_WORDS else f"{line[: _FIRST_WORDS - 1]}…") or None


# Everything that str.splitlines takes for the end of a line, where more than such ends follow.
_BREAKS = "\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
_LINE_END = re.compile(rf"(\r\n|[{_BREAKS}])(?=[^{_BREAKS}])")
_INDENTATION = 6


def indented(text: str) -> str:
    """``text`` with every line but the first indented, so that none of them can pose as what stands around it."""
    return _LINE_END.sub(rf"\1{' ' * _INDENTATION}", text)


def optional_text(value: Any, what: str) -> str | None:
    """``value`` as text that is not blank, or None; ``what`` names it in the error."""
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip():
        raise SessionValidationError(f"{what} must be text that is not empty, not {value!r:.40}")
    return clean_text(value)
