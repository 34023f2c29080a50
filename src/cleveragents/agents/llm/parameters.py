"""The parameters of a tool, as an llm is told of them and as what it sends is held against them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from functools import cache, cached_property
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from cleveragents.errors import InvalidSettingError, InvalidValueError
from cleveragents.values.canonical import canonical_json
from cleveragents.values.json import dump_json, json_value

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

LONGEST_MATCHED = 1_000
"""Characters of a text that is held against a pattern."""

_SECONDS = 1.0
"""Of the processor's time: what no schema and no arguments that anybody means come near."""
_ends: ContextVar[float] = ContextVar("ends")

_ONE_MESSAGE = {"message": {"type": "string"}}
_TOLD = 5
_SHOWN = 200


class Parameters:
    """The parameters that the tool ``name`` declares: a JSON Schema for each, by name; None where it says nothing.

    Such a tool takes a ``message``, in place of which the one that the llm was asked may stand, and whatever else it is
    sent. Raises InvalidSettingError for what no file could have.
    """

    def __init__(self, name: str, declared: Mapping[str, Any] | None) -> None:
        from cleveragents.config.tool_parameters import parameter_faults

        for path, fault in parameter_faults(declared or {}, count(1)):
            raise InvalidSettingError(f"tool {name}: parameters.{'.'.join(map(str, path))}: {fault}")
        self._declared = declared is not None
        self._properties = dict(_ONE_MESSAGE if declared is None else declared)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """What an llm is told. A parameter without a default has to be given."""
        required = [name for name, schema in self._properties.items() if "default" not in _mapping(schema)]
        return {"type": "object", "properties": self._properties, "required": required}

    def completed(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """``arguments`` with the defaults of those that are left out.

        Raises InvalidValueError, which names each parameter that does not fit, and what it has to be, in one line.
        """
        faults = list(dict.fromkeys(islice(self._faults(arguments), _TOLD)))
        if faults:
            raise InvalidValueError(f"the arguments do not fit: {'; '.join(faults)}")
        return dict(_completed(arguments, self.schema))

    def _faults(self, arguments: dict[str, Any]) -> Iterator[str]:
        if self._declared:
            for name in (name for name in arguments if name not in self._properties):
                known = f"there are: {', '.join(self._properties)}" if self._properties else "it takes none"
                yield f"there is no parameter {_short(dump_json(name))}; {known}"
        _ends.set(time.thread_time() + _SECONDS)
        try:
            for error in self._validator.iter_errors(arguments):
                yield from _told(error)
        except (RecursionError, ArithmeticError):
            raise InvalidValueError("the arguments cannot be held against their schema") from None

    @cached_property
    def _validator(self) -> Validator:
        from referencing import Registry

        schema = self.schema if self._declared else {**self.schema, "required": []}
        # A registry that holds nothing, and that fetches nothing.
        return _validators()(schema, registry=Registry())


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _completed(value: Any, schema: Any) -> Any:
    """``value`` with the defaults that ``schema`` has for what is missing; 2.0 where an integer is meant is 2."""
    schema = _mapping(schema)
    if isinstance(value, float) and schema.get("type") == "integer":
        return int(value)
    if isinstance(value, list):
        return [_completed(item, schema.get("items")) for item in value]
    if not isinstance(value, dict):
        return value
    schemas = _mapping(schema.get("properties"))
    given = {name: _completed(item, schemas.get(name)) for name, item in value.items()}
    left_out = [name for name, inner in schemas.items() if name not in value and "default" in _mapping(inner)]
    return given | {name: json_value(schemas[name]["default"]) for name in left_out}


def _told(error: ValidationError) -> Iterator[str]:
    """What an llm is told of ``error``: the place and the rule, and neither the value nor a whole schema."""
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
    where, rule = _short(place.removeprefix(".")) or "the object", str(error.validator)
    expected: Any = error.validator_value
    given: Any = error.instance
    if rule == "required":
        for name in expected:
            if name not in given:
                yield f"{_short(f'{place}.{name}'.removeprefix('.'))} is missing"
    elif rule == "type":
        kinds = " or ".join([expected] if isinstance(expected, str) else expected)
        yield f"{where} must be of type {kinds}, not {_kind(given)}"
    elif rule == "pattern" and len(given) > LONGEST_MATCHED:
        yield f"{where} is longer than {LONGEST_MATCHED:,} characters, and has to fit a pattern"
    elif rule in {"anyOf", "oneOf"} and error.context:
        ways = dict.fromkeys(text for inner in islice(error.context, _TOLD) for text in _told(inner))
        yield _short(" or ".join(ways))
    elif isinstance(expected, Mapping) or rule in {"allOf", "anyOf", "oneOf"}:
        yield f"{where} does not fit {rule!r} of its schema"
    else:
        yield f"{where} does not fit {rule!r}: {_short(dump_json(expected))}"


def _kind(value: Any) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


@cache
def _validators() -> type[Validator]:
    """The library's validator, made safe: each rule is one only for so long, and none takes time that grows wildly."""
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    rules = {**Draft202012Validator.VALIDATORS, "pattern": _pattern, "uniqueItems": _unique}
    kind: type[Validator] = extend(  # type: ignore[no-untyped-call]
        Draft202012Validator, {name: _bounded(rule) for name, rule in rules.items()}
    )
    return kind


def _bounded(rule: Any) -> Any:
    def bounded(validator: Validator, expected: Any, instance: Any, schema: Any) -> Any:
        if time.thread_time() > _ends.get():
            raise InvalidValueError("the arguments take too long to be held against their schema")
        return rule(validator, expected, instance, schema)

    return bounded


def _pattern(_validator: Validator, pattern: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    from cleveragents.config.tool_parameters import matches

    if isinstance(value, str) and not (len(value) <= LONGEST_MATCHED and matches(pattern, value)):
        yield ValidationError("does not match")


def _unique(_validator: Validator, unique: bool, items: Any, _schema: Any) -> Iterator[ValidationError]:
    from jsonschema import ValidationError

    if unique and isinstance(items, list) and len({canonical_json(item) for item in items}) < len(items):
        yield ValidationError("has an item twice")
