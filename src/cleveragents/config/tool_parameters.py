"""What the parameters of a tool may be: JSON Schemas (2020-12) that stand by themselves, and end in bounded time.

Of our own, since it has to tell each fault at its line, and within the time that reading a file may take.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from cleveragents.config.fields import JSON_TYPES, shown

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

Place = tuple[str | int, ...]
"""Names and numbers that lead to something inside of parameters."""

MAX_PATTERNS = 50
"""How many patterns a file may have for its tools: each takes up to a tenth of a second to read."""

_LONGEST_PATTERN = 200
_MOST_REPETITIONS = 1_000

_APART = (
    "a tool's schema stands by itself, and nothing is fetched; write out what is meant, or repeat it (&name, *name)"
)
_SCHEMAS = {
    "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems",
    "unevaluatedProperties",
}  # fmt: skip
_LISTS_OF_SCHEMAS = {"allOf", "anyOf", "oneOf", "prefixItems"}
_NAMED_SCHEMAS = {"$defs", "dependentSchemas", "properties"}


def parameter_faults(parameters: Mapping[str, Any], numbers: Iterator[int]) -> Iterator[tuple[Place, str]]:
    """What is wrong with ``parameters``, a schema for each name: where, and what. ``numbers`` counts all patterns."""
    for path, keyword, value in _keywords(parameters):
        if keyword == "pattern" and isinstance(value, str):
            fault = _pattern_fault(value, next(numbers))
        else:
            fault = _fault(keyword, value)
        if fault:
            yield path, fault


def matches(pattern: str, text: str) -> bool:
    """Whether ``pattern``, one that ``parameter_faults`` let through, is found in ``text``; in linear time."""
    return _compiled(pattern).isinstance_python(text)


def _keywords(schemas: Mapping[str, Any]) -> Iterator[tuple[Place, str, Any]]:
    """Every keyword of ``schemas`` and of those inside them, with its place; "" for what is no mapping of any."""
    ahead: list[tuple[Place, Any]] = [((name,), schema) for name, schema in schemas.items()]
    while ahead:
        path, schema = ahead.pop()
        if not isinstance(schema, Mapping):
            yield path, "", schema
            continue
        for keyword, value in schema.items():
            place = (*path, keyword)
            yield place, keyword, value
            if keyword in _SCHEMAS:
                ahead.append((place, value))
            elif keyword in _LISTS_OF_SCHEMAS and isinstance(value, list | tuple):
                ahead += [((*place, number), item) for number, item in enumerate(value)]
            elif keyword in _NAMED_SCHEMAS and isinstance(value, Mapping):
                ahead += [((*place, name), item) for name, item in value.items()]


def _fault(keyword: str, value: Any) -> str:
    """What is wrong with the value of ``keyword``; "" when nothing is."""
    if keyword.startswith("$") and keyword not in {"$defs", "$comment"}:
        return _APART
    if keyword == "patternProperties":
        return "names by pattern are not taken; write each under properties"
    if keyword == "type":
        return _type_fault(value)
    fits, expected = _RULES.get(keyword, (_anything, ""))
    return "" if fits(value) else f"{shown(value)} is not {expected}"


def _type_fault(value: Any) -> str:
    kinds = value if isinstance(value, list | tuple) else [value]
    wrong = [kind for kind in kinds if kind not in JSON_TYPES]
    if wrong or not kinds:
        return f"{shown(wrong[0] if wrong else value)} is not one of {', '.join(JSON_TYPES)}"
    return "" if len(set(kinds)) == len(kinds) else "the list of types has one of them twice"


def _pattern_fault(pattern: str, number: int) -> str:
    if number > MAX_PATTERNS:
        return f"there are more than {MAX_PATTERNS} patterns; check the rest in the code"
    if len(pattern) > _LONGEST_PATTERN:
        return f"a pattern has at most {_LONGEST_PATTERN} characters; check the rest in the code"
    counts = [max(1, *map(int, re.findall(r"\d+", braces))) for braces in re.findall(r"\{([^{}]*\d[^{}]*)\}", pattern)]
    if prod(counts) > _MOST_REPETITIONS:
        return f"a pattern repeats at most {_MOST_REPETITIONS:,} times in all; check the rest in the code"
    from pydantic_core import SchemaError

    try:
        _compiled(pattern)
    except SchemaError as error:
        reason = str(error).rstrip().rpartition("error: ")[2] or "it is too large"
        return f"{shown(pattern)} is no pattern that can be used: {reason:.200}"
    return ""


@lru_cache(maxsize=2 * MAX_PATTERNS)
def _compiled(pattern: str) -> SchemaValidator:
    """``pattern`` for the one engine at hand that no pattern makes slow."""
    from pydantic_core import SchemaValidator, core_schema

    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex", strict=True))


def _anything(_value: Any) -> bool:
    return True


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return _number(value) and value >= 0 and value == value // 1


def _names(value: Any) -> bool:
    names = isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
    return names and len(set(value)) == len(value)


def _of(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


def _some_schemas(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "": (_of(bool, dict), "a JSON Schema: a mapping of keywords"),
    "enum": (_of(list, tuple), "a list of values"),
    "examples": (_of(list, tuple), "a list of values"),
    "required": (_names, "a list of names, each there once"),
    "dependentRequired": (
        lambda value: isinstance(value, Mapping) and all(map(_names, value.values())),
        "a mapping of names to lists of names",
    ),
    "multipleOf": (lambda value: _number(value) and value > 0, "a number greater than 0"),
    "pattern": (_of(str), "text"),
    **dict.fromkeys(("title", "description", "format", "$comment"), (_of(str), "text")),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), (_of(bool), "true or false")),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), (_number, "a number")),
    **dict.fromkeys(
        (f"{end}{what}" for end in ("min", "max") for what in ("Length", "Items", "Properties", "Contains")),
        (_count, "a whole number, 0 or more"),
    ),
    **dict.fromkeys(_LISTS_OF_SCHEMAS, (_some_schemas, "a list of JSON Schemas that is not empty")),
    **dict.fromkeys(_NAMED_SCHEMAS, (_of(dict), "a mapping of names to JSON Schemas")),
}
