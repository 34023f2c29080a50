"""How routes hang together: what leads where, and which of them form a loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cleveragents.config.checks import until_fault
from cleveragents.config.models import RouteConfig
from cleveragents.config.operators import OperatorConfig
from cleveragents.config.vocabulary import FAIL, INPUT, OUTPUT, SKIP
from cleveragents.errors import ConfigError
from cleveragents.streams.operators import OPERATORS


class Network:
    """The routes of a network by name, and where each leads.

    ``targets`` says for ``input`` and each route where its messages go, in the order in which the routes are
    declared and each target once, although both ends of a connection may name it. ``parts`` are the routes that
    end together, those of a loop, or one that is in none; the flag says which.
    Raises ConfigError, with every fault, when a name is taken, reserved or unknown.
    """

    def __init__(self, routes: Sequence[RouteConfig], agents: Iterable[str]) -> None:
        self.routes = {route.name: route for route in routes}
        faults = [*_name_faults(routes), *_reference_faults(routes, set(agents))]
        if faults:
            raise ConfigError(faults)
        self.targets: dict[str, tuple[str, ...]] = {
            source: tuple(
                target
                for target in (*self.routes, OUTPUT)
                if (target != OUTPUT and source in self.routes[target].source)
                or (source != INPUT and target in self.routes[source].to)
            )
            for source in (INPUT, *self.routes)
        }
        faults = [
            f"route {route.name}: until: {fault}"
            for route in routes
            if route.until is not None and (fault := until_fault(route.name, self.targets))
        ]
        if faults:
            raise ConfigError(faults)
        self.parts = self._parts()

    def _parts(self) -> list[tuple[tuple[str, ...], bool]]:
        reached = {name: self._reached_from(name) for name in self.routes}
        parts: dict[tuple[str, ...], bool] = {}
        for name in self.routes:
            mates = (
                other for other in self.routes if other == name or (other in reached[name] and name in reached[other])
            )
            parts[tuple(mates)] = name in reached[name]
        return list(parts.items())

    def _reached_from(self, name: str) -> set[str]:
        reached: set[str] = set()
        ahead = [name]
        while ahead:
            for target in self.targets[ahead.pop()]:
                if target != OUTPUT and target not in reached:
                    reached.add(target)
                    ahead.append(target)
        return reached


def _name_faults(routes: Sequence[RouteConfig]) -> Iterable[str]:
    seen: set[str] = set()
    for route in routes:
        if route.name in {INPUT, OUTPUT}:
            yield f"route {route.name}: the name is reserved, choose another"
        if route.name in seen:
            yield f"route {route.name}: two routes have this name"
        seen.add(route.name)


def _reference_faults(routes: Sequence[RouteConfig], agents: set[str]) -> Iterable[str]:
    names = {route.name for route in routes}
    for route in routes:
        for source in route.source:
            if source != INPUT and source not in names:
                yield f"route {route.name}: from names {source}, which is neither {INPUT} nor a route"
        for target in route.to:
            if target != OUTPUT and target not in names:
                yield f"route {route.name}: to names {target}, which is neither {OUTPUT} nor a route"
        if route.on_error not in {FAIL, SKIP, *agents}:
            yield f"route {route.name}: on_error names {route.on_error}, which is not an agent"
        for step in route.through:
            yield from _step_faults(route.name, step, agents)


def _step_faults(route: str, step: str | OperatorConfig, agents: set[str]) -> Iterable[str]:
    if not isinstance(step, str) and type(step) not in OPERATORS:
        yield f"route {route}: {type(step).__name__} is not an operator"
        return
    for agent in (step,) if isinstance(step, str) else step.agents:
        if agent not in agents:
            yield f"route {route}: through names {agent}, which is not an agent"
