"""Text as it is kept, and as a terminal is shown it."""

from __future__ import annotations

import re
from typing import Any

from cleveragents.errors import SessionValidationError


def clean_text(text: str) -> str:
    """``text`` with surrogate pairs joined and each lone surrogate replaced by U+FFFD; all else unchanged."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


# C0 but tab and newline, DEL, C1, and what reorders text: LRM RLM ALM, embeddings, overrides, isolates.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def terminal_text(text: str) -> str:
    r"""``text`` for a terminal: control and bidi-override characters become visible escapes such as ``\x1b``."""
    if text.isprintable():
        return text
    return UNSAFE.sub(_visible, text.replace("\r\n", "\n"))


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004 - the width of the escape


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
