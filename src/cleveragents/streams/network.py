"""How routes hang together: what leads where, which of them form a loop, and whose text is the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from cleveragents.config.checks import reached, until_fault
from cleveragents.config.models import RouteConfig
from cleveragents.config.operators import OPERATORS, ModifierConfig, OperatorConfig, RetryConfig
from cleveragents.config.vocabulary import FAIL, INPUT, OUTPUT, SKIP
from cleveragents.errors import ConfigError


class Network:
    """The routes of a network by name, and where each leads. ``on_error`` is what each agent says of its failures.

    ``targets`` says for ``input`` and each route where its messages go, in the order in which the routes are
    declared and each target once, although both ends of a connection may name it. ``parts`` are the routes that
    end together, those of a loop, or one that is in none; the flag says which.
    Raises ConfigError, with every fault, when a name is taken, reserved or unknown.
    """

    def __init__(
        self, routes: Sequence[RouteConfig], agents: Iterable[str], on_error: Mapping[str, str] | None = None
    ) -> None:
        self.routes = {route.name: route for route in routes}
        self.on_error = dict(on_error or {})
        known = set(agents)
        faults = [
            *_stand_in_faults(self.on_error, known),
            *_name_faults(routes),
            *_reference_faults(routes, known),
        ]
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

    @property
    def answering_agent(self) -> str | None:
        """The agent whose text is the answer word for word, so that it can be shown as it arrives, if there is one.

        That is the last step of the only route to the output, when one message can come through at a time.
        """
        ending = self._only_source(OUTPUT)
        if ending is None or not self._is_reached_one_way(ending):
            return None
        route = self.routes[ending]
        steps = [step for step in route.through if not isinstance(step, ModifierConfig)]
        if not steps or not isinstance(steps[-1], str) or self._asked().count(steps[-1]) != 1:
            return None
        modifiers = takewhile(lambda step: isinstance(step, ModifierConfig), reversed(route.through))
        stand_in = self.on_error.get(steps[-1], route.on_error)
        if stand_in not in {FAIL, SKIP} or any(isinstance(step, RetryConfig) for step in modifiers):
            # What a failed attempt said is not the answer.
            return None
        return steps[-1]

    def _is_reached_one_way(self, name: str) -> bool:
        """Whether there is one way from the input to the route, so that a message comes to it once."""
        passed: set[str] = set()
        source: str | None = name
        while source is not None and source not in passed:
            if source == INPUT:
                return True
            passed.add(source)
            source = self._only_source(source)
        return False

    def _only_source(self, target: str) -> str | None:
        """What leads to ``target``, if it is one route alone, or the input."""
        sources = [source for source, targets in self.targets.items() if target in targets]
        return sources[0] if len(sources) == 1 else None

    def _asked(self) -> list[str]:
        """The names of the agents that the routes ask, once for each place where they are asked."""
        steps = [step for route in self.routes.values() for step in route.through]
        stand_ins = [*self.on_error.values(), *(route.on_error for route in self.routes.values())]
        return [*stand_ins, *(name for step in steps for name in ([step] if isinstance(step, str) else step.agents))]

    def _parts(self) -> list[tuple[tuple[str, ...], bool]]:
        after = {name: reached(self.targets[name], self.targets) for name in self.routes}
        parts: dict[tuple[str, ...], bool] = {}
        for name in self.routes:
            mates = (other for other in self.routes if other == name or (other in after[name] and name in after[other]))
            parts[tuple(mates)] = name in after[name]
        return list(parts.items())


def _stand_in_faults(on_error: Mapping[str, str], agents: set[str]) -> Iterable[str]:
    for name, other in on_error.items():
        if other not in {FAIL, SKIP, *agents}:
            yield f"agent {name}: on_error names {other}, which is not an agent"


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
    if not isinstance(step, str) and type(step) not in OPERATORS.values():
        yield f"route {route}: {type(step).__name__} is not an operator"
        return
    for agent in (step,) if isinstance(step, str) else step.agents:
        if agent not in agents:
            yield f"route {route}: through names {agent}, which is not an agent"
