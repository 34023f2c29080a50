"""What in a configuration is allowed, and hardly meant."""

from __future__ import annotations

from collections.abc import Iterator

from cleveragents.config.checks import Complaint, agents_to_run, reached
from cleveragents.config.models import AppConfig, RouteConfig
from cleveragents.config.operators import FilterConfig
from cleveragents.config.vocabulary import INPUT, OUTPUT


def doubts(config: AppConfig) -> Iterator[Complaint]:
    """Agents that nobody asks, and loops in which messages multiply; nothing for a file without routes."""
    if config.routes:
        yield from _idle_agents(config)
        yield from _splitting_loops(config)


def _idle_agents(config: AppConfig) -> Iterator[Complaint]:
    asked = {name for route in config.routes.values() for name in (*_agents(route), route.on_error)}
    for name in agents_to_run(config.model_dump(include={"agents"})["agents"]):
        if name not in asked:
            yield ("agents", name), "is in no route, so it is never asked"


def _agents(route: RouteConfig) -> Iterator[str]:
    for step in route.through:
        yield from (step,) if isinstance(step, str) else step.agents


def _splitting_loops(config: AppConfig) -> Iterator[Complaint]:
    routes = config.routes
    targets = {name: [target for target in route.to if target != OUTPUT] for name, route in routes.items()}
    for name, route in routes.items():
        for source in route.source:
            if source != INPUT and name not in targets[source]:
                targets[source].append(name)
    after = {name: reached(named, targets) for name, named in targets.items()}
    for name, named in targets.items():
        back = [target for target in named if name == target or name in after[target]]
        # Ways that each begin with a filter are a choice, as far as anybody can tell.
        open_ways = [target for target in back if not _is_choice(routes[target])]
        if len(back) > 1 and open_ways:
            ways = ", ".join(back[:4]) + (", …" if len(back) > 4 else "")  # noqa: PLR2004 - enough to know them
            text = (
                f"splits in a loop: {ways} all lead back here, so messages multiply until the run ends at its limits; "
                "begin each of these routes with a filter, or let one of them lead back"
            )
            yield ("routes", name), text


def _is_choice(route: RouteConfig) -> bool:
    return bool(route.through) and isinstance(route.through[0], FilterConfig)
