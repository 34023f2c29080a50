"""The arguments of a tool's call: what an llm wrote, as an object, and in the form in which it is told it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cleveragents.errors import InvalidValueError
from cleveragents.values.json import json_value, load_json
from cleveragents.values.text import clean_text

Arguments = dict[str, Any] | str
"""An object where it is one; else the text that could not be read, as it came."""


def flat_call(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """A stored call with its name and arguments beside its id; others write them into a ``function`` inside of it."""
    inner = call.get("function")
    return {**call, **inner} if isinstance(inner, Mapping) else call


def read_arguments(given: Any) -> dict[str, Any]:
    """The object in ``given``, which is one or its JSON text; nothing, ``null`` and blank text are no arguments.

    Raises InvalidValueError for anything else.
    """
    if isinstance(given, str):
        given = load_json(given) if given.strip() else None
    arguments = {} if given is None else given
    if not isinstance(arguments, dict):
        raise InvalidValueError("they are not an object of names and values")
    return dict(json_value(arguments))


def kept_arguments(given: Any) -> Arguments:
    """``given`` as it is kept, and told to an llm again: the same in the turn it comes from as in all later ones."""
    try:
        return read_arguments(given)
    except InvalidValueError:
        return clean_text(given if isinstance(given, str) else str(given))
