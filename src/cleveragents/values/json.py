"""What may be stored as JSON: one rule for messages, metadata, state and arguments."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
import operator
import sys
from collections.abc import Mapping
from typing import Any

from cleveragents.errors import InvalidValueError
from cleveragents.values.text import clean_text

MAX_DEPTH = 200
"""Levels of nesting that every JSON reader and writer used here manages."""

MAX_INTEGER_BITS = 14_283
"""Integers of up to 4,300 digits are kept: the longest that Python reads and writes as text by default."""


def json_value(value: Any, path: str = "") -> Any:
    """``value`` as plain JSON data, copied; what cannot be kept is refused with its path.

    Converted: tuples to lists, mappings to dicts, dates and times to ISO 8601, UUID and Decimal to text, an
    enum to its value, numpy scalars to numbers. Refused with InvalidValueError: NaN and infinities, bytes,
    sets, every other object, keys that are not text, nesting deeper than 200 levels.
    """
    return _json_value(value, path, 0)


def _json_value(value: Any, path: str, depth: int) -> Any:  # noqa: C901, PLR0911, PLR0912 - one flat table of cases
    kind = type(value)
    if kind is str:
        return clean_text(value)
    if value is None or kind is bool:
        return value
    if depth > MAX_DEPTH:
        raise InvalidValueError(f"nested deeper than {MAX_DEPTH} levels", path[:80])
    if isinstance(value, enum.Enum):
        return _json_value(value.value, path, depth + 1)
    if _is_a(value, "numpy", "generic"):
        return _json_value(value.item(), path, depth + 1)
    if isinstance(value, str):
        return clean_text(str.__str__(value))
    if isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            raise InvalidValueError("an integer of more than 4,300 digits cannot be stored", path)
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidValueError(f"{float(value)!r} cannot be stored as JSON", path)
        return float(value)
    if isinstance(value, Mapping):
        return _json_object(value, path, depth)
    if isinstance(value, list | tuple):
        return [_json_value(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if _is_a(value, "uuid", "UUID"):
        return str(value)
    if _is_a(value, "decimal", "Decimal"):
        if not value.is_finite():
            raise InvalidValueError(f"{value} cannot be stored as JSON", path)
        return str(value)
    raise InvalidValueError(f"a value of type {kind.__name__} cannot be stored as JSON", path)


def _json_object(value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise InvalidValueError(f"the key {key!r} is not text", path)
        name = clean_text(key.value if isinstance(key, enum.Enum) else str.__str__(key))
        if name in result:
            raise InvalidValueError(f"two keys become the same text {name!r}", path)
        result[name] = _json_value(item, f"{path}.{name}" if path else name, depth + 1)
    return result


def _is_a(value: Any, module: str, name: str) -> bool:
    """Whether ``value`` is a ``module.name``, without importing it: such a value exists only if it is loaded."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(value, getattr(loaded, name))


def json_object(value: Mapping[str, Any] | None, what: str) -> dict[str, Any]:
    """``value`` as a JSON object (None as an empty one); ``what`` names it when it is something else."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidValueError(f"must be a mapping of names to values, not {type(value).__name__}", what)
    return _json_object(value, "", 0)


def json_record(value: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """``value`` as ``json_value`` gives it, but with the levels of nesting counted anew within each of its members."""
    return _json_object(value, path, -1)


def whole_number(value: Any, what: str) -> int:
    """``value`` as a whole number of 0 or more, such as a limit; ``what`` names it when it is something else."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if number < 0 or isinstance(value, bool):
        raise InvalidValueError(f"must be a whole number, 0 or more, not {value!r:.40}", what)
    return number


def dump_json(value: Any) -> str:
    """One line of JSON for a value that ``json_value`` let through. NUL and control characters are escaped."""
    return _encoder.encode(value)


def load_json(text: str | bytes) -> Any:
    """The value of JSON ``text``, bytes being UTF-8. Raises InvalidValueError for what is not JSON.

    Refused as well: NaN, infinities, numbers too large for a float, and deep nesting. A byte order mark is passed over.
    """
    if isinstance(text, bytes) and text.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidValueError("UTF-16 text; save it as UTF-8")
    try:
        text = text if isinstance(text, str) else text.decode("utf-8-sig")
        return _decoder.decode(text)
    except RecursionError:
        raise InvalidValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise InvalidValueError(f"not JSON: {error}") from None


def scan_json(text: str, start: int) -> tuple[Any, int] | None:
    """The JSON value that begins at ``start`` of ``text``, and where it ends; None where there is no whole one.

    Raises InvalidValueError for what ``load_json`` refuses, and for an object in which a key comes twice.
    """
    try:
        return _scanner.raw_decode(text, start)
    except json.JSONDecodeError:
        return None
    except RecursionError:
        raise InvalidValueError(f"nested deeper than {MAX_DEPTH} levels") from None
    except InvalidValueError:
        raise
    except ValueError as error:
        raise InvalidValueError(f"not JSON: {error}") from None


def load_record(data: bytes) -> Any:
    """The value of a stored JSON object that a person may have changed, checked as ``json_record`` does."""
    value = load_json(data)
    # What we wrote is in order. Half of a surrogate pair comes as an escape, and deep nesting needs many brackets.
    suspect = b"\\ud" in data or b"\\uD" in data or data.count(b"[") + data.count(b"{") > MAX_DEPTH
    return json_record(value) if suspect and isinstance(value, dict) else value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not allowed")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in value if keys.count(key) > 1)
        raise InvalidValueError(f"the key {twice!r:.60} comes twice")
    return value


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits:.40} is too large")
    return number


# Made once: each costs as much as a short message.
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
_scanner = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_unique)
