"""What the stages of a run share: the global context, what llms used, what is under way, who listens, the time."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from reactivex.scheduler.eventloop import AsyncIOScheduler

from cleveragents.agents.agent import Agent, Message
from cleveragents.agents.events import AgentEvent, current_listener, listening
from cleveragents.conversation.usage import Usage
from cleveragents.errors import AgentError, StreamError
from cleveragents.streams.budget import Budget
from cleveragents.streams.parcel import Parcel
from cleveragents.values.json import json_object
from cleveragents.values.merge import Removal, merged

if TYPE_CHECKING:
    from reactivex import abc

Failure = AgentError | StreamError


class RunState:
    """What the stages of a run share.

    ``on_error`` is what each agent says of messages on which it fails. ``context`` is the global context as it is
    now, replaced at each change and never changed in place. ``in_flight`` is the number of messages that wait for
    agents and expressions, ``tasks`` is what they wait for, and ``results`` is what has come out of the network.
    ``budget`` is what may still come out of steps. ``cut_off`` is why an agent's answer was not whole, by its name.
    """

    clock: abc.SchedulerBase
    scope: contextvars.Context

    def __init__(
        self, agents: Mapping[str, Agent], on_error: Mapping[str, str], context: Mapping[str, Any], budget: Budget
    ) -> None:
        self.agents = agents
        self.on_error = on_error
        self.budget = budget
        self.context: Mapping[str, Any] = json_object(context, "context")
        self.usages: dict[str, Usage] = {}
        self.cut_off: dict[str, str] = {}
        self.in_flight = 0
        self.tasks: set[asyncio.Task[Parcel | None]] = set()
        self.results: deque[Message | Failure] = deque()
        self._moved = asyncio.Event()
        self._bug: Exception | None = None
        self._listener = current_listener()
        self._listener_failed = False

    def begin(self) -> None:
        """Take the time from the event loop that runs, and hear what the tasks of this run tell."""
        self.clock = _Clock(self)
        with listening(self.tell if self._listener else None):
            self.scope = contextvars.copy_context()

    def change(self, changes: Mapping[str, Any], removed: Sequence[Removal]) -> None:
        """Merge what an agent did to the global context into it."""
        if changes or removed:
            self.budget.weigh(changes)
            self.context = merged(self.context, changes, removed)

    def count(self, usage: Usage | None) -> None:
        """Add what an agent used."""
        if usage is not None:
            before = self.usages.get(usage.llm)
            self.usages[usage.llm] = usage if before is None else before + usage

    def report(self, error: Failure) -> None:
        """Give ``error`` out as what came of a message."""
        if self.budget.takes_error(error.route):
            self.results.append(error)

    def tell(self, event: AgentEvent) -> None:
        """Pass ``event`` on to whoever listens; a listener that fails is reported once, and the run goes on."""
        try:
            if self._listener is not None:
                self._listener(event)
        except Exception as error:  # noqa: BLE001 - whoever listens is no part of the run
            if not self._listener_failed:
                self._listener_failed = True
                failure = StreamError("", f"a listener failed: {type(error).__name__}: {error}")
                failure.__cause__ = error
                self.report(failure)

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Around what moves messages from a callback: afterwards the run goes on, or ends with the bug met there."""
        try:
            yield
        except Exception as bug:  # noqa: BLE001 - raised where the run is awaited; in a callback it would be lost
            self._bug = bug
        finally:
            self._moved.set()

    async def moved(self) -> None:
        """Wait until messages have been moved by a callback. Raises the bug that was met in one."""
        await self._moved.wait()
        self._moved.clear()
        if self._bug is not None:
            raise self._bug


class _Clock(AsyncIOScheduler):
    """The event loop's time for operators: steady when the clock on the wall is set, and telling the run it moved."""

    def __init__(self, state: RunState) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(loop)
        self._state = state
        self._start = datetime.fromtimestamp(0, tz=UTC)

    @property
    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._loop.time())

    def invoke_action(self, action: abc.ScheduledAction[Any], state: Any = None) -> abc.DisposableBase:
        with self._state.moving():
            return super().invoke_action(action, state)
