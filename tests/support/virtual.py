"""Operators in virtual time: the real ones, on a clock that a test moves.

In a diagram a character is a second: ``-`` nothing, ``|`` the end, ``#`` an error, any other a message. What is
in brackets happens at once: ``-a-(b|)`` is a after one second, b and the end after three.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops
from reactivex.notification import Notification, OnCompleted, OnError, OnNext
from reactivex.testing import Recorded, TestScheduler

from cleveragents import Agent, Message
from cleveragents.config import LimitsConfig
from cleveragents.streams.budget import Budget
from cleveragents.streams.live import LivePart, LiveRoute
from cleveragents.streams.operators import OPERATORS
from cleveragents.streams.parcel import Parcel
from cleveragents.streams.stage import Stage, Work
from cleveragents.streams.state import RunState
from support.networks import route

Operator = Callable[[Observable[Any]], Observable[Any]]

BEGIN = 200
"""When the test scheduler subscribes."""


class SlowStage(Stage):
    """A stage whose expressions and agents really run, and take ``takes`` seconds of virtual time each."""

    takes = 1.0

    def awaiting(self, work: Work, parcel: Parcel) -> Observable[Parcel]:
        def begun(_: Any) -> Observable[Parcel]:
            given: Observable[Parcel]
            try:
                result = asyncio.run(work(parcel))
                given = rx.empty() if result is None else rx.just(result)
            except Exception as error:  # noqa: BLE001 - handed on, as the original does
                given = rx.throw(error)
            return rx.timer(self.takes, scheduler=self.scheduler).pipe(ops.flat_map(lambda _: given))

        return rx.defer(begun)


class Timeline:
    """A clock, streams made of diagrams, and what comes out of a stream: pairs of a time and what happened then."""

    def __init__(self) -> None:
        self.scheduler = TestScheduler()

    def stage(self, name: str = "stage", *, is_agent: bool = False) -> Stage:
        return Stage(self._state({}), LiveRoute("r", LivePart(loop=True)), name, is_agent=is_agent)

    def slow_stage(self, name: str, takes: float, agents: Mapping[str, Agent] | None = None) -> SlowStage:
        """A stage with ``agents``, at which every message takes its time."""
        stage = SlowStage(self._state(agents or {}), LiveRoute("r", LivePart(loop=True)), name)
        stage.takes = takes
        return stage

    def _state(self, agents: Mapping[str, Agent]) -> RunState:
        budget = Budget(LimitsConfig())
        budget.grow()
        state = RunState(agents, {}, {}, budget)
        state.clock = self.scheduler
        return state

    def operator(self, step: dict[str, Any], stage: Stage | None = None) -> Operator:
        """The operator that is written as ``step``, over contents instead of parcels."""
        before = ["a"] if step.keys() & {"retry", "timeout"} else []
        settings = route("r", "input", [*before, step]).through[-1]
        assert not isinstance(settings, str)
        operator = OPERATORS[type(settings)](settings, stage or self.stage(next(iter(step))))
        return rx.compose(ops.map(parcel), operator, ops.map(content))

    def hot(self, diagram: str | Iterable[tuple[float, Any]], error: Exception | None = None) -> Observable[Any]:
        """A stream that goes on whether anybody looks or not."""
        moments = diagram_moments(diagram) if isinstance(diagram, str) else diagram
        return self.scheduler.create_hot_observable(
            [Recorded(BEGIN + int(time), _notification(what, error)) for time, what in moments]
        )

    def cold(self, diagram: str, error: Exception | None = None) -> Any:
        """A stream that begins with each subscription."""
        return self.scheduler.create_cold_observable(
            [Recorded(int(time), _notification(what, error)) for time, what in diagram_moments(diagram)]
        )

    def run(self, stream: Observable[Any], until: float = 500.0) -> list[tuple[float, Any]]:
        """Contents, errors and ``"|"``, each with its time."""
        seen = self.scheduler.start(lambda: stream, subscribed=BEGIN, disposed=BEGIN + until)
        return [(record.time - BEGIN, _shown(record.value)) for record in seen.messages]


def diagram(line: str, lookup: dict[str, Any] | None = None, error: Exception | None = None) -> list[tuple[float, Any]]:
    """A diagram as ``Timeline.run`` tells it; ``lookup`` says what a character stands for."""
    shown = (lookup or {}) | ({"#": error} if error else {})
    return [(time, shown.get(what, what)) for time, what in diagram_moments(line)]


def diagram_moments(line: str) -> Iterator[tuple[float, str]]:
    time, grouped = 0.0, False
    for character in line:
        if character not in "-()":
            yield time, character
        if character in "()":
            grouped = character == "("
        if not grouped:
            time += 1


def parcel(value: Any) -> Parcel:
    return Parcel(Message(value), {})


def content(given: Parcel) -> Any:
    return given.message.content


def _notification(what: Any, error: Exception | None) -> Notification[Any]:
    if what == "|":
        return OnCompleted()
    return OnError(error or ValueError("broken")) if what == "#" else OnNext(what)


def _shown(what: Any) -> Any:
    if isinstance(what, OnNext):
        return what.value
    return what.exception if isinstance(what, OnError) else "|"
