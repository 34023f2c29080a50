"""A network in motion: the routes of one run, and which of them may be told that nothing more will come."""

from __future__ import annotations

from collections.abc import Sequence

from reactivex.subject import Subject

from cleveragents.config.vocabulary import INPUT, OUTPUT
from cleveragents.streams.network import Network
from cleveragents.streams.parcel import Parcel


class LivePart:
    """Routes that end together: when nothing can come in any more and, in a loop, nothing is held."""

    def __init__(self, *, loop: bool) -> None:
        self.loop = loop
        self.routes: list[LiveRoute] = []
        self.followers: set[LivePart] = set()
        self.feeders = 0
        self.living = 0
        self.held = 0

    @property
    def may_end(self) -> bool:
        """Whether one of its routes can be told that nothing more will come."""
        return not self.feeders and not (self.loop and self.held)


class LiveRoute:
    """A route in a run: messages come in at ``subject``, go through its stages, and on to ``targets``.

    ``ways`` are the targets, and whether the output is one, for what an ``until`` says of a message: nothing (None),
    that it leaves the loop (True), or that it stays (False).
    """

    def __init__(self, name: str, part: LivePart) -> None:
        self.name = name
        self.part = part
        self.subject: Subject[Parcel] = Subject()
        self.targets: list[LiveRoute] = []
        self.to_output = False
        self.ways: dict[bool | None, tuple[Sequence[LiveRoute], bool]] = {}
        self.ended = False
        self.entered = 0
        self.left = 0
        self.why_ended = ""

    def swallow(self, step: str) -> None:
        """A message ends at ``step``, and that is no error."""
        self.why_ended = f"{step} in route {self.name} passed nothing on"


class LiveNetwork:
    """The routes of one run by name, their parts, and those that begin at the input. ``living`` have not ended."""

    def __init__(self, network: Network) -> None:
        self.parts: list[LivePart] = []
        self.routes: dict[str, LiveRoute] = {}
        for names, loop in network.parts:
            part = LivePart(loop=loop)
            part.routes = [LiveRoute(name, part) for name in names]
            part.living = len(part.routes)
            self.routes |= {route.name: route for route in part.routes}
            self.parts.append(part)
        for route in self.routes.values():
            self._lead_on(route, network)
        for part in self.parts:
            for follower in part.followers:
                follower.feeders += 1
        self.inputs = [self.routes[target] for target in network.targets[INPUT]]
        for route in self.inputs:
            route.part.feeders += 1
        self.living = len(self.routes)

    def _lead_on(self, route: LiveRoute, network: Network) -> None:
        targets = network.targets[route.name]
        route.to_output = OUTPUT in targets
        route.targets = [self.routes[target] for target in targets if target != OUTPUT]
        outside = [target for target in route.targets if target.part is not route.part]
        route.ways = dict.fromkeys((None, True, False), (route.targets, route.to_output))
        if network.routes[route.name].until is not None:
            route.ways[True] = outside, route.to_output
            route.ways[False] = [target for target in route.targets if target.part is route.part], False
        route.part.followers.update(target.part for target in outside)

    def close_input(self) -> None:
        """Nothing more comes from the input."""
        for route in self.inputs:
            route.part.feeders -= 1

    def next_to_end(self) -> LiveRoute | None:
        """A route to which nothing more will come, and that has not been told."""
        ready = (route for part in self.parts if part.may_end for route in part.routes if not route.ended)
        return next(ready, None)

    def has_ended(self, route: LiveRoute) -> None:
        """Nothing more comes from ``route``; with the last one of its part, from its part."""
        self.living -= 1
        route.part.living -= 1
        if not route.part.living:
            for follower in route.part.followers:
                follower.feeders -= 1

    def why_nothing(self) -> str:
        """Where the messages ended when nothing came to the output."""
        routes = self.routes.values()
        for route in routes:
            if route.why_ended:
                return route.why_ended
        for route in routes:
            if route.entered and not route.left:
                return f"route {route.name} passed nothing on"
        for route in routes:
            if route.left and not route.targets and not route.to_output:
                return f"route {route.name} leads nowhere; give it 'to: {OUTPUT}'"
        return f"no route leads from {INPUT} to {OUTPUT}"
