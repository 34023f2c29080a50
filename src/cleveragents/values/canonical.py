"""The one form of a JSON value that a checksum is taken over, so that programs in any language can verify it."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from typing import Any

# Between these positions of the decimal point JavaScript writes a number without an exponent.
_LAST_PLAIN, _BEFORE_PLAIN = 21, -6
_CONSTANTS = {None: "null", True: "true", False: "false"}


def canonical_json(value: Any) -> bytes:
    """``value``, as ``values.json.json_value`` gives it, in the form of RFC 8785.

    Integers beyond 2^53, which that form does not know, are written in plain decimal digits.
    """
    pieces: list[str] = []
    _write(value, pieces.append)
    return "".join(pieces).encode()


def checksum(document: Mapping[str, Any]) -> str:
    """``sha256:`` and the hex digest of ``document`` in that form."""
    return digest(canonical_json(dict(document)))


def digest(canonical: bytes) -> str:
    """The checksum of a document that is in that form already."""
    import hashlib

    return f"sha256:{hashlib.sha256(canonical).hexdigest()}"


def _write(value: Any, write: Callable[[str], None]) -> None:
    kind = type(value)
    if isinstance(value, str):
        write(encode_basestring(value))
    elif value is None or kind is bool:
        write(_CONSTANTS[value])
    elif kind is int:
        write(str(value))
    elif kind is float:
        write(_number(value))
    elif kind is list:
        separator = "["
        for item in value:
            write(separator)
            _write(item, write)
            separator = ","
        write("]" if value else "[]")
    else:
        # Keys are in the order of their UTF-16 code units, which for ASCII is Python's own.
        separator = "{"
        for key in sorted(value) if all(map(str.isascii, value)) else sorted(value, key=_utf_16):
            write(f"{separator}{encode_basestring(key)}:")
            _write(value[key], write)
            separator = ","
        write("}" if value else "{}")


def _utf_16(key: str) -> bytes:
    return key.encode("utf-16-be")


def _number(value: float) -> str:
    """A float as JavaScript writes it: the fewest digits that give it back, an exponent only when it is far from 1."""
    if value == 0:
        return "0"
    number = decimal.Decimal(repr(value)).normalize()
    digits = "".join(map(str, number.as_tuple().digits))
    point = number.adjusted() + 1
    if _BEFORE_PLAIN < point <= _LAST_PLAIN:
        whole = digits[:point].ljust(point, "0") if point > 0 else "0"
        fraction = digits[point:] if point > 0 else "0" * -point + digits
        text = f"{whole}.{fraction}" if fraction else whole
    else:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        text = f"{digits[0]}{fraction}e{point - 1:+d}"
    return f"-{text}" if value < 0 else text
