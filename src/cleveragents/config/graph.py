"""``config graph``: a network drawn as Mermaid, as DOT, or as lines of text.

Whatever a file says becomes part of a label and nothing else: names of nodes are made up here, and each format's
own characters are written as its escapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from cleveragents.config.models import AppConfig, LLMAgentConfig, RouteConfig
from cleveragents.config.operators import OperatorConfig, ParallelConfig, SwitchConfig
from cleveragents.config.vocabulary import FAIL, INPUT, OUTPUT
from cleveragents.values.json import dump_json
from cleveragents.values.text import terminal_text

_LONGEST = 200
"""Characters of a label that are shown."""


@dataclass(frozen=True, slots=True)
class _Node:
    """``shape`` is end, agent or step; ``agent`` the name of the agent that a node of that shape asks."""

    key: str
    label: str
    shape: str
    agent: str = ""


@dataclass(frozen=True, slots=True)
class _Edge:
    source: str
    target: str
    label: str = ""
    dotted: bool = False


@dataclass(slots=True)
class _Graph:
    """Nodes by route, ``""`` for those outside of routes, and the edges between them."""

    nodes: dict[str, list[_Node]] = field(default_factory=dict)
    edges: list[_Edge] = field(default_factory=list)


def _graph(config: AppConfig) -> _Graph:
    graph = _Graph({"": [_Node("input", INPUT, "end"), _Node("output", OUTPUT, "end")]})
    first, last = {OUTPUT: "output"}, {INPUT: "input"}
    routes = config.network()
    for number, route in enumerate(routes):
        nodes = list(_steps(config, route, f"r{number}s"))
        graph.nodes[route.name] = nodes
        graph.edges += [_Edge(one.key, other.key) for one, other in pairwise(nodes)]
        first[route.name], last[route.name] = nodes[0].key, nodes[-1].key
    for source, target in _connections(routes):
        graph.edges.append(_Edge(last[source], first[target]))
    _draw_tools(config, graph)
    return graph


def _connections(routes: tuple[RouteConfig, ...]) -> list[tuple[str, str]]:
    """What leads where, once each, although both ends may say so."""
    found = [(source, route.name) for route in routes for source in route.source]
    found += [(route.name, target) for route in routes for target in route.to]
    return list(dict.fromkeys(found))


def _draw_tools(config: AppConfig, graph: _Graph) -> None:
    """The tools that an llm may call, beside each place where it is asked."""
    for node in [node for nodes in graph.nodes.values() for node in nodes]:
        agent = config.agents.get(node.agent)
        for number, tool in enumerate(agent.tools if isinstance(agent, LLMAgentConfig) else ()):
            graph.nodes[""].append(_Node(f"{node.key}t{number}", tool, "agent"))
            graph.edges.append(_Edge(node.key, f"{node.key}t{number}", "calls", dotted=True))


def _steps(config: AppConfig, route: RouteConfig, prefix: str) -> Iterator[_Node]:
    """The nodes of a route, of which there is always one."""
    steps = [*route.through, *([] if route.until is None else [f"until: {route.until}"])] or ["passes on"]
    for number, step in enumerate(steps):
        key = f"{prefix}{number}"
        if number >= len(route.through):
            yield _Node(key, _one_line(str(step)), "step")
        elif isinstance(step, str):
            yield _Node(key, _agent_label(config, step), "agent", step)
        else:
            yield _Node(key, _one_line(_operator_label(step)), "step")


def _agent_label(config: AppConfig, name: str) -> str:
    on_error = config.on_error.get(name)
    return name if on_error is None else f"{name} (on_error: {on_error})"


def _operator_label(step: OperatorConfig) -> str:
    if isinstance(step, ParallelConfig):
        return f"parallel, {step.parallel.join}: {', '.join(step.agents)}"
    if isinstance(step, SwitchConfig):
        return "switch: " + "; ".join(f"{case.when or 'else'} → {case.agent}" for case in step.switch)
    ((name, settings),) = step.model_dump(exclude_defaults=True).items()
    return f"{name}: {settings if isinstance(settings, str) else dump_json(settings)}"


def _route_label(route: str, config: AppConfig) -> str:
    on_error = config.routes[route].on_error if route in config.routes else FAIL
    return route if on_error == FAIL else f"{route} (on_error: {on_error})"


def _one_line(text: str) -> str:
    line = terminal_text(" ".join(text.split()))
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


# --- formats --------------------------------------------------------------------------------------------


def _mermaid(config: AppConfig) -> Iterator[str]:
    graph = _graph(config)
    shapes = {"end": '(["{}"])', "agent": '["{}"]', "step": '{{{{"{}"}}}}'}
    yield "flowchart LR"
    for number, (route, nodes) in enumerate(graph.nodes.items()):
        if route:
            yield f'    subgraph g{number}["{_in_mermaid(_route_label(route, config))}"]'
        for node in nodes:
            yield f"    {'    ' if route else ''}{node.key}{shapes[node.shape].format(_in_mermaid(node.label))}"
        if route:
            yield "    end"
    for edge in graph.edges:
        arrow = "-.->" if edge.dotted else "-->"
        label = f'|"{_in_mermaid(edge.label)}"|' if edge.label else ""
        yield f"    {edge.source} {arrow}{label} {edge.target}"


def _in_mermaid(text: str) -> str:
    """``text`` in a quoted label: what is no letter, digit, space or harmless sign becomes a character code."""
    return re.sub(r"[^\w .,:()-]|_", lambda sign: f"#{ord(sign[0])};", text)


def _dot(config: AppConfig) -> Iterator[str]:
    graph = _graph(config)
    shapes = {"end": "oval", "agent": "box", "step": "hexagon"}
    yield "digraph {"
    yield "    rankdir=LR"
    for number, (route, nodes) in enumerate(graph.nodes.items()):
        if route:
            yield f"    subgraph cluster_{number} {{"
            yield f"        label={_in_dot(_route_label(route, config))}"
        for node in nodes:
            indent = "        " if route else "    "
            yield f"{indent}{node.key} [label={_in_dot(node.label)} shape={shapes[node.shape]}]"
        if route:
            yield "    }"
    for edge in graph.edges:
        style = f" [label={_in_dot(edge.label)} style=dotted]" if edge.dotted else ""
        yield f"    {edge.source} -> {edge.target}{style}"
    yield "}"


def _in_dot(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _text(config: AppConfig) -> Iterator[str]:
    routes = config.network()
    connections = _connections(routes)
    for route in routes:
        sources = ", ".join(source for source, target in connections if target == route.name)
        targets = ", ".join(target for source, target in connections if source == route.name)
        steps = [node.label for node in _steps(config, route, "")] if route.through or route.until else []
        yield f"{_route_label(route.name, config)}: {' -> '.join([sources, *steps, targets])}"
    for name, agent in config.agents.items():
        if isinstance(agent, LLMAgentConfig) and agent.tools:
            yield f"{name} calls {', '.join(agent.tools)}"


FORMATS: dict[str, Callable[[AppConfig], Iterator[str]]] = {"mermaid": _mermaid, "dot": _dot, "text": _text}
"""Makes the lines of a drawing, by the name of its format."""
