"""How the parts of a configuration must fit together, and what its free-form values may hold.

These look at plain data in the shape of the YAML, and pass over whatever has a wrong shape: that is reported by
the models. So all faults of a file come out in one go, however many there are and of whichever kind.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count, islice
from typing import Any

from cleveragents.config.fields import NAME_PATTERN, shown
from cleveragents.config.rules import TEMPERATURE
from cleveragents.config.tool_parameters import parameter_faults
from cleveragents.config.vocabulary import FAIL, INPUT, OUTPUT, SKIP
from cleveragents.errors import InvalidValueError
from cleveragents.values.json import json_value

Path = tuple[str | int, ...]
Complaint = tuple[Path, str]
"""Where in the data, and what is wrong there."""

_RESERVED = (INPUT, OUTPUT)
_LISTED = 12
"""How many names a fault lists."""
_COMPARED = 64
"""How many characters of an unknown name are compared with how many known ones."""


def whole_faults(data: Mapping[str, Any]) -> Iterator[Complaint]:
    """Everything wrong with a configuration that no section shows by itself."""
    agents, routes = _mapping(data.get("agents")), _mapping(data.get("routes"))
    yield from _name_faults(agents, routes)
    yield from _free_value_faults(data, agents)
    yield from _tool_faults(agents)
    yield from _stand_in_faults(agents, routes)
    if routes:
        yield from _route_faults(agents, routes)
    elif agents and len(candidates := agents_to_run(agents)) != 1:
        who = f"there are {len(candidates)} agents" if candidates else "every agent stands in for another,"
        yield ("agents",), f"{who} and no routes; write under routes which gets a message after which"


def agents_to_run(agents: Mapping[str, Any]) -> list[str]:
    """The agents that stand by themselves: all but those that an llm calls, or that stand in for another."""
    settings = [_mapping(agent) for agent in agents.values()]
    helpers = {name for agent in settings for key in ("tools", "on_error") for _, name in _names(agent.get(key))}
    return [name for name in agents if name not in helpers]


def until_fault(name: str, targets: Mapping[str, Iterable[str]]) -> str | None:
    """Why the route ``name`` can have no ``until``, by where each route leads; None when it can."""
    sources: dict[str, list[str]] = {source: [] for source in targets}
    for source, named in targets.items():
        for target in named:
            sources.setdefault(target, []).append(source)
    before = reached([name], sources)
    back = {target: target in before for target in targets[name]}
    if not any(back.values()):
        return "nothing leads from this route back to it; remove until, or add the way back"
    if all(back.values()):
        return "no way leads from this route out of its loop; add to: output, or a route outside of the loop"
    return None


def reached(start: Iterable[str], targets: Mapping[str, Iterable[str]]) -> set[str]:
    """The routes in ``start``, and all to which a message comes from them, by where each route leads."""
    found: set[str] = set()
    ahead = list(start)
    while ahead:
        name = ahead.pop()
        if name != OUTPUT and name not in found:
            found.add(name)
            ahead += targets[name]
    return found


def nearest(name: str, known: Iterable[str]) -> str:
    """What to add to a fault about an unknown ``name``: the known one meant, or all there are."""
    known = list(islice(known, _COMPARED))
    near = difflib.get_close_matches(name[:_COMPARED], known, n=1)
    if near:
        return f"did you mean {_one_of(near)}?"
    return f"expected {_one_of(known)}" if known else "there is none to choose from"


def _one_of(names: Iterable[str]) -> str:
    """The names as a choice, a long list cut short."""
    words = [name if re.fullmatch(NAME_PATTERN, name) else shown(name) for name in islice(names, _LISTED + 1)]
    if len(words) > _LISTED:
        words[_LISTED] = "another"
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _names(value: Any) -> list[tuple[Path, str]]:
    """The names in a text or a list, each with its place; whatever else is there is passed over."""
    if isinstance(value, str):
        return [((), value)]
    if not isinstance(value, list | tuple):
        return []
    return [((index,), name) for index, name in enumerate(value) if isinstance(name, str)]


def _name_faults(agents: Mapping[str, Any], routes: Mapping[str, Any]) -> Iterator[Complaint]:
    named: list[Path] = [*(("agents", name) for name in agents), *(("routes", name) for name in routes)]
    for agent, settings in agents.items():
        named += [("agents", agent, "parameters", name) for name in _mapping(_mapping(settings).get("parameters"))]
    for path in named:
        if not re.fullmatch(NAME_PATTERN, str(path[-1])):
            yield path, "a name consists of at most 64 letters (a to z), digits, '_' and '-'"
    for name in _RESERVED:
        if name in routes:
            yield ("routes", name), f"{name} is where every network {_role(name)}; give the route another name"


def _role(end: str) -> str:
    return "begins" if end == INPUT else "ends"


def _free_value_faults(data: Mapping[str, Any], agents: Mapping[str, Any]) -> Iterator[Complaint]:
    context = _mapping(data.get("context"))
    for key, value in context.items():
        if key != "temperature":
            yield from _json_faults(value, ("context", key))
        elif fault := TEMPERATURE.fault(value):
            yield ("context", key), f"{shown(value)} {fault}"
    patterns = count(1)
    for name, agent in agents.items():
        path, parameters = ("agents", name, "parameters"), _mapping(agent).get("parameters")
        yield from _json_faults(parameters, path)
        schemas = {key: schema for key, schema in _mapping(parameters).items() if isinstance(schema, Mapping)}
        yield from (((*path, *place), fault) for place, fault in parameter_faults(schemas, patterns))


def _json_faults(value: Any, path: Path) -> Iterator[Complaint]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _json_faults(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _json_faults(item, (*path, index))
    else:
        try:
            json_value(value)
        except InvalidValueError as error:
            yield path, error.reason


def _tool_faults(agents: Mapping[str, Any]) -> Iterator[Complaint]:
    tools = [name for name, agent in agents.items() if _mapping(agent).get("type") == "tool"]
    for name, agent in agents.items():
        for place, tool in _names(_mapping(agent).get("tools")):
            path: Path = ("agents", name, "tools", *place)
            if tool not in agents:
                yield path, f"there is no agent {shown(tool)}; {nearest(tool, tools)}"
            elif _mapping(agents[tool]).get("type") == "llm":
                yield path, f"{shown(tool)} is an llm agent; only agents of type tool can be tools"


def _stand_in_faults(agents: Mapping[str, Any], routes: Mapping[str, Any]) -> Iterator[Complaint]:
    for part, named in (("agents", agents), ("routes", routes)):
        for name, settings in named.items():
            other = _mapping(settings).get("on_error")
            if isinstance(other, str) and other not in {FAIL, SKIP}:
                if part == "agents" and other == name:
                    yield (part, name, "on_error"), "an agent cannot stand in for itself"
                elif other not in agents:
                    known = nearest(other, chain([FAIL, SKIP], agents))
                    yield (part, name, "on_error"), f"there is no agent {shown(other)}; {known}"


def _route_faults(agents: Mapping[str, Any], routes: Mapping[str, Any]) -> Iterator[Complaint]:
    # What never gets a message, or leads nowhere, can only be told when every name is known.
    complete = not any(name in routes for name in _RESERVED)
    for name, route in routes.items():
        settings = _mapping(route)
        for place, agent in _asked(settings.get("through")):
            if agent not in agents:
                yield ("routes", name, "through", *place), f"there is no agent {shown(agent)}; {nearest(agent, agents)}"
        for key, end in (("from", INPUT), ("to", OUTPUT)):
            for place, other in _names(settings.get(key)):
                if other != end and other not in routes:
                    complete = False
                    yield ("routes", name, key, *place), _no_route(other, end, agents, routes)
    if complete and all(_names(_mapping(route).get("from")) for route in routes.values()):
        yield from _flow_faults(routes)


def _asked(through: Any) -> Iterator[tuple[Path, str]]:
    """The agents that the steps of a route ask, by themselves or in an operator, each with its place."""
    yield from _names(through)
    for number, step in enumerate(through if isinstance(through, list | tuple) else ()):
        for place, agent in _names(_mapping(_mapping(step).get("parallel")).get("agents")):
            yield (number, "parallel", "agents", *place), agent
        cases = _mapping(step).get("switch")
        for index, case in enumerate(cases if isinstance(cases, list | tuple) else ()):
            for _, agent in _names(_mapping(case).get("agent")):
                yield (number, "switch", index, "agent"), agent


def _no_route(name: str, end: str, agents: Mapping[str, Any], routes: Mapping[str, Any]) -> str:
    if name in _RESERVED:
        return f"{name} is where every network {_role(name)}; expected {_one_of(chain([end], routes))}"
    if name in agents:
        return f"{shown(name)} is an agent, not a route; expected {_one_of(chain([end], routes))}"
    return f"there is no route {shown(name)}; {nearest(name, chain([end], routes))}"


def _flow_faults(routes: Mapping[str, Any]) -> Iterator[Complaint]:
    """Faults of a network in which every name is known."""
    sources = {name: [source for _, source in _names(route["from"])] for name, route in routes.items()}
    targets = {name: [target for _, target in _names(route.get("to"))] for name, route in routes.items()}
    for name, named in sources.items():
        for source in named:
            if source != INPUT:
                targets[source].append(name)
    targets = {name: list(dict.fromkeys(named)) for name, named in targets.items()}
    found = reached([name for name, named in sources.items() if INPUT in named], targets)
    if not found:
        yield ("routes",), "no route begins at input; write from: input in the first one"
        return
    for name in routes:
        if not targets[name]:
            yield ("routes", name), "leads nowhere; add to: output, or name it in another route's from"
        elif name not in found:
            yield ("routes", name), "never gets a message: nothing leads to it from input"
        if _mapping(routes[name]).get("until") is not None and (fault := until_fault(name, targets)):
            yield ("routes", name, "until"), fault
    if all(targets.values()) and not any(OUTPUT in targets[name] for name in found):
        yield ("routes",), "no route leads to output; add to: output to the last one"
