"""How changes of a key/value state are made, compared and merged.

A change is a mapping of keys to new values, and a sequence of removals. Nested mappings merge per nested key;
every other value, None included, replaces what was there. A removal is a key, or the keys that lead to a nested one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cleveragents.errors import InvalidValueError
from cleveragents.values.text import clean_text

Keys = tuple[str, ...]
"""The keys that lead to a value in nested mappings, the outermost first."""

Removal = str | Keys

_NOTHING = object()


@dataclass(frozen=True, slots=True)
class Changes:
    """What turned one state into another: values set (nested per key) and the keys removed."""

    set: dict[str, Any]
    removed: tuple[Keys, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.set or self.removed)


def merged(state: Mapping[str, Any], changes: Mapping[str, Any], removed: Iterable[Removal] = ()) -> dict[str, Any]:
    """A new state: ``removed`` taken away first, then ``changes`` merged in. The arguments stay as they are."""
    result = dict(state)
    for removal in removed:
        _remove(result, (removal,) if isinstance(removal, str) else tuple(removal))
    for key, value in changes.items():
        old = result.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[key] = merged(old, value) if both else value  # type: ignore[arg-type]
    return result


def checked_removals(removed: Iterable[Removal]) -> list[Keys]:
    """``removed`` as keys in their stored form. Raises InvalidValueError for what is no removal."""
    if isinstance(removed, str):
        raise InvalidValueError(f"must be a list of keys or paths; write [{removed!r:.60}]", "removed")
    removals = []
    for removal in removed:
        keys = (removal,) if isinstance(removal, str) else removal
        if not isinstance(keys, tuple | list) or not keys or not all(isinstance(key, str) for key in keys):
            raise InvalidValueError(f"{removal!r:.60} is neither a key nor a path of keys", "removed")
        removals.append(tuple(map(clean_text, keys)))
    return removals


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> Changes:
    """The changes that turn ``before`` into ``after``: ``merged(before, d.set, d.removed) == after``."""
    changed: dict[str, Any] = {}
    removed: list[Keys] = [(key,) for key in before if key not in after]
    for key, value in after.items():
        if key not in before:
            changed[key] = value
            continue
        old = before[key]
        if _same(old, value):
            continue
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            inner = difference(old, value)
            removed += [(key, *keys) for keys in inner.removed]
            if inner.set:
                changed[key] = inner.set
        else:
            changed[key] = value
    return Changes(changed, tuple(removed))


def overwritten(
    before: Mapping[str, Any], now: Mapping[str, Any], changes: Mapping[str, Any], removed: Iterable[Removal] = ()
) -> Iterator[Keys]:
    """The keys of what ``changes`` and ``removed``, made from ``before``, would change although ``now`` differs there.

    What both sides set to the same value, or both removed, is no conflict.
    """
    for removal in removed:
        keys = (removal,) if isinstance(removal, str) else tuple(removal)
        current = value_at(now, keys, _NOTHING)
        if current is not _NOTHING and not _same(value_at(before, keys, _NOTHING), current):
            yield keys
    for key, value in changes.items():
        old, current = before.get(key, _NOTHING), now.get(key, _NOTHING)
        if _same(old, current):
            continue
        if isinstance(current, Mapping) and isinstance(value, Mapping):
            inner = overwritten(old if isinstance(old, Mapping) else {}, current, value)
            yield from ((key, *keys) for keys in inner)
        elif not _same(current, value):
            yield (key,)


def value_at(state: Mapping[str, Any], keys: Keys, default: Any = None) -> Any:
    """What stands where ``keys`` lead, or ``default`` where there is nothing."""
    value: Any = state
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            return default
        value = value[key]
    return value


def _same(first: Any, second: Any) -> bool:
    """Equal as JSON: 1, 1.0 and True are three different values."""
    if type(first) is not type(second):
        return False
    if isinstance(first, Mapping):
        return first.keys() == second.keys() and all(_same(first[key], second[key]) for key in first)
    if isinstance(first, list):
        return len(first) == len(second) and all(map(_same, first, second))
    return bool(first == second)


def _remove(state: dict[str, Any], keys: Keys) -> None:
    """Remove what ``keys`` lead to, copying the mappings on the way; what is not there is no error."""
    key, *rest = keys
    if not rest:
        state.pop(key, None)
    elif isinstance(state.get(key), Mapping):
        state[key] = dict(state[key])
        _remove(state[key], tuple(rest))
