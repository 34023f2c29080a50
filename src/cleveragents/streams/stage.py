"""One stage of a route in a run: what an operator has at hand, and the bridge to what is asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import reduce
from typing import Any, TypeVar

import reactivex as rx
from reactivex import Observable, abc
from reactivex import operators as ops
from reactivex.disposable import Disposable

from cleveragents.config.fields import shown
from cleveragents.config.vocabulary import FAIL, SKIP
from cleveragents.errors import AgentError, CleverAgentsError, StreamError
from cleveragents.streams.asking import AskedAgents
from cleveragents.streams.live import LiveRoute
from cleveragents.streams.parcel import Parcel
from cleveragents.streams.state import RunState

Operator = Callable[[Observable[Parcel]], Observable[Parcel]]

_Kept = TypeVar("_Kept")
Work = Callable[[Parcel], Coroutine[Any, Any, Parcel | None]]


class Stage:
    """A place in a route; ``name`` is the name of the agent there, or of the operator, such as ``filter``.

    ``modifiers`` are applied to the work on every single message. ``on_error`` says what becomes of one that fails.
    """

    def __init__(
        self, state: RunState, route: LiveRoute, name: str, *, is_agent: bool = False, on_error: str = FAIL
    ) -> None:
        self.state = state
        self.name = name
        self.agents = AskedAgents(state, route, name)
        self.scheduler = state.clock
        self.modifiers: list[Operator] = []
        self._route = route
        self._is_agent = is_agent
        self._on_error = on_error

    def in_turn(self, each: Callable[[Parcel], Observable[Parcel]]) -> Operator:
        """An operator that makes a stream of every message, one after the other in order, and passes on what is in it.

        An AgentError or StreamError in it is the end of its message alone, unless ``on_error`` names an agent that
        replies instead: it is reported, or passed over, and the next one begins.
        """
        inside = 0

        def enter(_: Parcel) -> None:
            nonlocal inside
            inside += 1
            self.state.in_flight += 1
            self._route.part.held += 1

        def leave(count: int = 1) -> None:
            nonlocal inside
            inside -= count
            self.state.in_flight -= count
            self._route.part.held -= count

        def alone(parcel: Parcel) -> Observable[Parcel]:
            modified = reduce(lambda stream, modifier: modifier(stream), self.modifiers, each(parcel))
            handled = ops.catch(lambda error, _: self._handled(error, parcel))
            reported = ops.catch(lambda error, _: self._reported(error, parcel))
            return modified.pipe(handled, reported, ops.finally_action(leave))

        return rx.compose(
            ops.do_action(enter),
            ops.map(alone),
            ops.merge(max_concurrent=1),
            # What still waits when a later stage has had enough never gets its turn.
            ops.finally_action(lambda: leave(inside)),
        )

    def keeping(
        self, operator: Callable[[Observable[Parcel]], Observable[_Kept]], *, together: bool
    ) -> Callable[[Observable[Parcel]], Observable[_Kept]]:
        """``operator``, which keeps messages for a time: while it does, the loop it stands in is not over.

        ``together`` tells that what it gives is the end of all that it has kept.
        """
        inside = 0

        def enter(_: Parcel) -> None:
            nonlocal inside
            if not (together and inside):
                inside += 1
                self._route.part.held += 1

        def leave(_: Any = None) -> None:
            nonlocal inside
            if inside:
                inside -= 1
                self._route.part.held -= 1

        def leave_all() -> None:
            while inside:
                leave()

        return rx.compose(ops.do_action(enter), operator, ops.do_action(leave), ops.finally_action(leave_all))

    def awaiting(self, work: Work, parcel: Parcel) -> Observable[Parcel]:
        """A stream of what ``work`` makes of ``parcel``; each subscription begins a task, and disposing cancels it."""

        def subscribe(observer: abc.ObserverBase[Parcel], _: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            wanted = True

            def done(task: asyncio.Task[Parcel | None]) -> None:
                self.state.tasks.discard(task)
                if wanted:
                    with self.state.moving():
                        self._hand_on(task, observer)

            def cancel() -> None:
                nonlocal wanted
                wanted = False
                task.cancel()

            task = asyncio.get_running_loop().create_task(work(parcel), context=self.state.scope.copy())
            self.state.tasks.add(task)
            task.add_done_callback(done)
            return Disposable(cancel)

        return rx.create(subscribe)

    def _hand_on(self, task: asyncio.Task[Parcel | None], observer: abc.ObserverBase[Parcel]) -> None:
        try:
            result = task.result()
        except asyncio.CancelledError:
            observer.on_error(self.error("was cancelled"))
        except Exception as error:  # noqa: BLE001 - handed on, not lost
            observer.on_error(error)
        else:
            if result is not None:
                observer.on_next(result)
            observer.on_completed()

    async def evaluate(self, expression: str, parcel: Parcel, **more: Any) -> Any:
        """The value of ``expression`` in the sandbox, where it sees the message, the context and ``more``.

        The context is the one with which the message was handed on: so all branches of a split decide alike,
        whenever they come to it, and whatever other messages have changed meanwhile.
        """
        from cleveragents.agents.tool.sandbox import evaluate

        message = parcel.message
        variables = {
            "message": message.content,
            "context": parcel.context,
            "metadata": dict(message.metadata),
            **more,
        }
        try:
            return await evaluate(expression, variables)
        except CleverAgentsError as error:
            raise self.error(f"{shown(expression)}: {error}") from error

    def passed_on(self, parcel: Parcel, content: Any) -> Parcel | None:
        """``parcel`` with another content. None as content means that nothing goes on."""
        if content is None:
            self.swallow()
            return None
        return parcel.carrying(content)

    def swallow(self) -> None:
        """A message ends here, and that is no error."""
        self._route.swallow(self.name)

    def error(self, reason: str, *, temporary: bool = False) -> AgentError | StreamError:
        """An error that names this place."""
        if self._is_agent:
            return AgentError(self.name, reason, temporary=temporary)
        return StreamError(self._route.name, " ".join(f"{self.name} {reason}".split()), temporary=temporary)

    def _handled(self, error: Exception, parcel: Parcel) -> Observable[Parcel]:
        """What ``on_error`` puts in the place of ``error``."""
        if self._on_error == FAIL or not isinstance(error, AgentError | StreamError):
            return rx.throw(error)
        self.agents.pass_over(error, self._on_error)
        if self._on_error == SKIP:
            return rx.empty()

        async def reply(parcel: Parcel) -> Parcel | None:
            return await self.agents.ask(self._on_error, parcel)

        return self.awaiting(reply, parcel)

    def _reported(self, error: Exception, parcel: Parcel) -> Observable[Parcel]:
        if not isinstance(error, AgentError | StreamError):
            return rx.throw(error)
        error.route = self._route.name
        error.message = parcel.without_conversation().message  # an error must not hold a store
        self.state.report(error)
        return rx.empty()
