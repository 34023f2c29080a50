"""Rules for single values that hold for a file and for Python alike. Importing them does not import pydantic."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic_core import CoreSchema

REFUSED = "refused"
"""Type of an error whose text follows the value it is about."""

_LONGEST_TIME = 86_400
_SHORTEST_TIME = 1e-6


@dataclass(frozen=True, eq=False)
class Rule:
    """What a value must be, for use in ``Annotated``.

    ``fault`` says what is wrong with a value, in words that follow it, or "". ``schema`` is what the rule adds to the
    JSON Schema of the value's type. Whether a value is of that type at all is for pydantic to say.
    """

    fault: Callable[[Any], str]
    schema: Mapping[str, Any] = field(default_factory=dict)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import PydanticCustomError, core_schema

        def check(value: Any) -> Any:
            if fault := self.fault(value):
                raise PydanticCustomError(REFUSED, "{reason}", {"reason": fault})
            return value

        return core_schema.no_info_before_validator_function(check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), **self.schema}


def between(least: float, most: float) -> Rule:
    """The rule that a value is a number from ``least`` to ``most``."""

    def fault(value: Any) -> str:
        if not _is_number(value):
            return f"is not a number between {least} and {most}"
        return "" if least <= value <= most else f"is not between {least} and {most}"

    return Rule(fault, {"minimum": least, "maximum": most})


def _above_zero(value: Any) -> str:
    return "is not greater than 0" if _is_number(value) and value <= 0 else ""


def _measurable(value: Any) -> str:
    if not _is_number(value) or not -math.inf < value < math.inf:
        return ""
    if value > _LONGEST_TIME:
        return f"is more than {_LONGEST_TIME}"
    return _above_zero(value) or ("is less than a microsecond" if value < _SHORTEST_TIME else "")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


TEMPERATURE = between(0, 2)
Temperature = Annotated[float, TEMPERATURE]
Count = Annotated[int, Rule(_above_zero, {"exclusiveMinimum": 0})]
"""A whole number above 0."""
Seconds = Annotated[float, Rule(_measurable, {"exclusiveMinimum": 0, "maximum": _LONGEST_TIME})]
"""From a microsecond, the step of Python's own timers, to a day: beyond, clocks and timers overflow."""


def address_fault(url: str) -> str:
    """What is wrong with the address of a server, in words that follow its name; "" when nothing is."""
    try:
        parts = urlsplit(url)
        # The property looks at the port, which may be no number.
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or re.search(r"\s", url):
        return "is not an address such as http://127.0.0.1:8080/v1"
    if "?" in url or "#" in url:
        return "has a ? or a #, after which the paths of requests would be lost; leave out what follows"
    return ""
