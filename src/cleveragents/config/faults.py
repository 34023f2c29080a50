"""What the models refuse, in plain words and with the place in the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, get_args

from pydantic import ValidationError

from cleveragents.config.checks import nearest
from cleveragents.config.document import Document
from cleveragents.config.fields import COMPLAINT, Section, looks_like_key, shown
from cleveragents.config.llm_settings import LLMSettings
from cleveragents.config.models import WHOLE, AppConfig, LLMAgentConfig, RouteConfig, ToolAgentConfig
from cleveragents.config.operators import OPERATORS
from cleveragents.config.rules import REFUSED
from cleveragents.config.yaml_nodes import Fault, Path
from cleveragents.errors import InvalidSettingError

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

AGENT_TYPES: dict[str, type[Section]] = {"llm": LLMAgentConfig, "tool": ToolAgentConfig}

# What to say, by pydantic's type of error.
_SAID = {
    REFUSED: "{value} {reason}",
    COMPLAINT: "{reason}",
    "value_error": "{error}",
    "too_short": "is empty; expected at least one agent",
    "greater_than": "{value} is not greater than {gt:.15g}",
    "greater_than_equal": "{value} is less than {ge:.15g}",
    "less_than_equal": "{value} is more than {le:.15g}",
    "literal_error": "{value} is not one of {expected}",
    "finite_number": "{value} is not a number that can be used",
    "string_unicode": "holds characters that are not text",
}
# What was expected, by the beginning of pydantic's type of error.
_EXPECTED = {
    "string": "text",
    "float": "a number",
    "int": "a whole number",
    "dict": "a mapping of keys to values",
    "model": "a mapping of keys to values",
    "tuple": "a list",
}
_REQUIRED = {
    "agents": "the agents, by name",
    "llm": "provider:model, local, or gguf:/path/to/file.gguf",
    "code": "the Python code of the tool",
    "from": "input, or the name of a route",
    "agent": "the name of an agent",
    "attempts": "how often to try",
    "value": "a Python expression",
}


_STEP = 4
"""Where in a location the operator of a route's step stands: routes, name, through, number, operator."""


class _Settings(Section, LLMSettings):
    """The settings of an llm agent by themselves."""


def check_settings(values: Mapping[str, Any]) -> None:
    """Refuse settings of an llm agent that no file could have. Raises InvalidSettingError, which names the first."""
    try:
        _Settings.model_validate(values)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        raise InvalidSettingError(f"{detail['loc'][0]} {_said(detail)}") from None


def model_faults(error: ValidationError, document: Document, guessed: set[Path], most: int) -> list[Fault]:
    """Faults of ``document`` that ``error`` is about, the first ``most``; not those of ``checks.whole_faults``.

    Nothing is missing from the agents at ``guessed``, whose type is not known.
    """
    details = (
        detail
        for detail in error.errors(include_url=False)
        if detail["type"] != WHOLE and not (detail["type"] == "missing" and detail["loc"][:2] in guessed)
    )
    return [_fault(detail, document) for detail in islice(details, most)]


def _fault(detail: ErrorDetails, document: Document) -> Fault:
    kind, location = detail["type"], detail["loc"]
    path = _in_file(location)
    if kind == "extra_forbidden":
        return Fault(document.line(path), path, unknown_key(location))
    if kind == "missing":
        return Fault(document.line(path), path, f"is missing; expected {_REQUIRED[str(path[-1])]}")
    if kind in {"union_tag_invalid", "union_tag_not_found"}:
        return _wrong_member(path, detail["input"], document)
    path = document.nearest(path)
    line, row = document.line(path), detail.get("ctx", {}).get("line")
    if row and path in document.text_lines:
        line = document.text_lines[path] + row - 1
    return Fault(line, path, _said(detail))


def _in_file(location: Path) -> Path:
    """``location`` without the steps that are none in the file: pydantic names the chosen member of a union too."""
    if location[0] == "agents":
        return (*location[:2], *location[3:])
    if location[0] == "routes" and location[2:3] == ("through",):
        return (*location[:4], *location[5:])
    return location


def unknown_key(location: Path) -> str:
    """What to say of a key that no section has, by where the models met it."""
    model: type[Section] = AppConfig
    if location[0] == "agents":
        model = AGENT_TYPES[str(location[2])]
    elif location[0] == "routes" and len(location) > _STEP:
        model = _section(OPERATORS[str(location[_STEP])], location[_STEP + 1 : -1])
    elif location[0] == "routes":
        model = RouteConfig
    elif location[0] in {"history", "limits"}:
        model = _section(AppConfig, location[:-1])
    known = [field.serialization_alias or name for name, field in model.model_fields.items() if not field.exclude]
    return f"unknown key; {nearest(str(location[-1]), known)}"


def _section(model: type[Section], keys: Path) -> type[Section]:
    """The section to which ``keys`` lead inside of another one."""
    for key in keys:
        if isinstance(key, str):
            annotation = model.model_fields[key].annotation
            kinds = [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type)]
            model = next(kind for kind in kinds if issubclass(kind, Section))
    return model


def typed_agents(document: Document) -> tuple[dict[str, Any], list[Fault]]:
    """The data of ``document`` with agents of no known type as what they seem to be, and the faults of their types.

    So what else is wrong in such an agent is told as well.
    """
    agents, faults = document.data.get("agents"), []
    if not isinstance(agents, dict):
        return document.data, []
    typed = dict(agents)
    for name, agent in agents.items():
        if isinstance(agent, dict) and not (isinstance(agent.get("type"), str) and agent["type"] in AGENT_TYPES):
            path = ("agents", name, "type")
            given = f"{shown(agent['type'])} is no type of agent" if path in document.lines else "is missing"
            faults.append(Fault(document.line(path), path, f"{given}; expected {' or '.join(AGENT_TYPES)}"))
            typed[name] = {**agent, "type": "tool" if "code" in agent else "llm"}
    return {**document.data, "agents": typed}, faults


def _wrong_member(path: Path, value: Any, document: Document) -> Fault:
    """A step of a route that is neither an agent's name nor an operator."""
    if isinstance(value, dict) and len(value) == 1:
        name = next(iter(value))
        path = (*path, name)
        return Fault(document.line(path), path, f"unknown operator; {nearest(name, OPERATORS)}")
    given = f"a mapping of {len(value)} keys" if isinstance(value, dict) else shown(value)
    expected = f"expected the name of an agent, or one operator ({', '.join(OPERATORS)})"
    return Fault(document.line(path), path, f"{given} is no step of a route; {expected}")


def _said(detail: ErrorDetails) -> str:
    kind, value = detail["type"], detail["input"]
    if kind in _SAID:
        return _SAID[kind].format(value=shown(value), **detail.get("ctx", {}))
    expected = next((words for prefix, words in _EXPECTED.items() if kind.startswith(prefix)), None)
    if expected is None:
        return f"{shown(value)} is refused: {detail['msg']}"
    if value is None:
        return f"has no value; expected {expected}"
    hint = ", such as [name]" if expected == "a list" and isinstance(value, str) else ""
    return f"{shown(value)} is not {expected}{hint}"


def fault_line(file: str, fault: Fault) -> str:
    """``FILE:LINE: key.path: what is wrong``, on one line and safe for a terminal."""
    place = f"{file}:{fault.line}" if fault.line else file
    return f"{place}: {key_path(fault.path)}: {fault.text}" if fault.path else f"{place}: {fault.text}"


def key_path(path: Path) -> str:
    """Keys joined by dots, places in a list in brackets; a key that is no plain word in quotes."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{_key(step)}" for step in path).removeprefix(".")


def _key(key: str) -> str:
    return key if re.fullmatch(r"[\w-]{1,64}", key) and not looks_like_key(key) else shown(key)
