"""One stage of a route in a run: what an operator has at hand, and the bridge to what is asynchronous."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

import reactivex as rx
from reactivex import Observable, abc
from reactivex import operators as ops
from reactivex.disposable import Disposable

from cleveragents.agents.agent import Message, Reply, Said
from cleveragents.agents.events import AgentAnswered, ContextConflict, ErrorPassedOver
from cleveragents.config.vocabulary import FAIL, SKIP
from cleveragents.errors import AgentError, CleverAgentsError, StreamError
from cleveragents.streams.parcel import Parcel
from cleveragents.values.json import json_object, json_value
from cleveragents.values.merge import overwritten, value_at

if TYPE_CHECKING:
    from cleveragents.streams.run import Chain, Run

Operator = Callable[[Observable[Parcel]], Observable[Parcel]]
LONGEST_SHOWN = 60
"""Characters of an expression that an error shows."""

_Kept = TypeVar("_Kept")
Work = Callable[[Parcel], Coroutine[Any, Any, Parcel | None]]


class Stage:
    """A place in a route; ``name`` is the name of the agent there, or of the operator, such as ``filter``.

    ``modifiers`` are applied to the work on every single message. ``on_error`` says what becomes of one that fails.
    """

    def __init__(self, run: Run, chain: Chain, name: str, *, is_agent: bool = False, on_error: str = FAIL) -> None:
        self.run = run
        self.name = name
        self.scheduler = run.clock
        self.modifiers: list[Operator] = []
        self._chain = chain
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
            self.run.in_flight += 1
            self._chain.part.held += 1

        def leave(count: int = 1) -> None:
            nonlocal inside
            inside -= count
            self.run.in_flight -= count
            self._chain.part.held -= count

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
                self._chain.part.held += 1

        def leave(_: Any = None) -> None:
            nonlocal inside
            if inside:
                inside -= 1
                self._chain.part.held -= 1

        def leave_all() -> None:
            while inside:
                leave()

        return rx.compose(ops.do_action(enter), operator, ops.do_action(leave), ops.finally_action(leave_all))

    def awaiting(self, work: Work, parcel: Parcel) -> Observable[Parcel]:
        """A stream of what ``work`` makes of ``parcel``; each subscription begins a task, and disposing cancels it."""

        def subscribe(observer: abc.ObserverBase[Parcel], _: abc.SchedulerBase | None = None) -> abc.DisposableBase:
            wanted = True

            def done(task: asyncio.Task[Parcel | None]) -> None:
                self.run.tasks.discard(task)
                if wanted:
                    with self.run.moving():
                        self._hand_on(task, observer)

            def cancel() -> None:
                nonlocal wanted
                wanted = False
                task.cancel()

            task = asyncio.get_running_loop().create_task(work(parcel), context=self.run.scope.copy())
            self.run.tasks.add(task)
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

    async def consult(self, agent: str, parcel: Parcel) -> Parcel | None:
        """The reply of an agent that is one of several in a step: its own ``on_error`` takes effect here."""
        try:
            return await self.ask(agent, parcel)
        except AgentError as error:
            stand_in = self.run.on_error.get(agent, FAIL)
            if stand_in == FAIL:
                raise
            self._pass_over(error, stand_in)
            return None if stand_in == SKIP else await self.ask(stand_in, parcel)

    async def ask(self, agent: str, parcel: Parcel) -> Parcel | None:
        """The agent's reply. It sees a copy of the context as it is now; whatever it raises becomes an AgentError."""
        began = time.perf_counter()
        failure = ""
        try:
            return await self._reply(agent, parcel)
        except AgentError as error:
            failure = error.reason
            raise
        except asyncio.CancelledError:
            failure = "cancelled"
            raise
        finally:
            self.run.tell(AgentAnswered(agent, self._chain.name, time.perf_counter() - began, failure))

    async def _reply(self, agent: str, parcel: Parcel) -> Parcel | None:
        asked, before, asking = parcel.message, self.run.context, self.run.agents[agent]
        try:
            message = Message(
                json_value(asked.content, "message"),
                json_object(before, "context"),
                dict(asked.metadata),
                asked.conversation,
            )
            reply = await asking.process(message)
            content = self._accepted(agent, reply, before)
        except AgentError:
            raise
        except asyncio.CancelledError:
            if _is_being_cancelled():
                raise
            raise AgentError(agent, "was cancelled") from None
        except (Exception, SystemExit) as error:
            # An OSError is a connection refused, a name not resolved, a time-out: the next attempt may do better.
            raise AgentError(agent, _told(error), temporary=isinstance(error, OSError)) from error
        if asked.conversation is not None and getattr(asking, "takes_conversation", False):
            parcel = parcel.without_conversation()
        # Later steps get an llm's answer, not what it said before it called tools.
        content = reply.said[-1].text if reply.said else content
        return self.passed_on(parcel, content, self.run.context, {**asked.metadata, "agent": agent}, reply.said)

    def _accepted(self, agent: str, reply: Reply, before: Mapping[str, Any]) -> Any:
        """The content of a reply, all of which can be kept: its usage is counted, its changes are made.

        ``before`` is the context that the agent has seen.
        """
        if not isinstance(reply, Reply):
            raise AgentError(agent, f"gave back a value of type {type(reply).__name__}, not a Reply")
        self.run.count(reply.usage)
        if _is_being_cancelled():
            # It has ended all the same, too late: somebody else was first, or its time was up.
            raise asyncio.CancelledError
        content, changes = json_value(reply.content, "result"), json_object(reply.changes, "changes")
        now = self.run.context
        self.run.change(changes, reply.removed)
        if now is not before:
            for path in overwritten(before, now, changes, reply.removed):
                old, new = value_at(now, path), value_at(self.run.context, path)
                self.run.tell(ContextConflict(agent, self._chain.name, path, old, new))
        return content

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
            shown = expression if len(expression) <= LONGEST_SHOWN else f"{expression[:LONGEST_SHOWN]}…"
            raise self.error(f"{shown!r}: {error}") from error

    def passed_on(
        self,
        parcel: Parcel,
        content: Any,
        context: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        said: Sequence[Said] = (),
    ) -> Parcel | None:
        """``parcel`` with another content, and what else is given. None as content means that nothing goes on."""
        if content is None:
            self.swallow()
            return None
        return parcel.carrying(content, context, metadata, said)

    def swallow(self) -> None:
        """A message ends here, and that is no error."""
        self._chain.why_ended = f"{self.name} in route {self._chain.name} passed nothing on"

    def error(self, reason: str, *, temporary: bool = False) -> AgentError | StreamError:
        """An error that names this place."""
        if self._is_agent:
            return AgentError(self.name, reason, temporary=temporary)
        return StreamError(self._chain.name, " ".join(f"{self.name} {reason}".split()), temporary=temporary)

    def _handled(self, error: Exception, parcel: Parcel) -> Observable[Parcel]:
        """What ``on_error`` puts in the place of ``error``."""
        if self._on_error == FAIL or not isinstance(error, AgentError | StreamError):
            return rx.throw(error)
        self._pass_over(error, self._on_error)
        if self._on_error == SKIP:
            return rx.empty()

        async def reply(parcel: Parcel) -> Parcel | None:
            return await self.ask(self._on_error, parcel)

        return self.awaiting(reply, parcel)

    def _pass_over(self, error: AgentError | StreamError, on_error: str) -> None:
        stand_in = "" if on_error == SKIP else on_error
        if not stand_in:
            self._chain.why_ended = f"on_error in route {self._chain.name} left out what failed: {error}"
        self.run.tell(ErrorPassedOver(self._chain.name, str(error), stand_in))

    def _reported(self, error: Exception, parcel: Parcel) -> Observable[Parcel]:
        if not isinstance(error, AgentError | StreamError):
            return rx.throw(error)
        error.route = self._chain.name
        error.message = parcel.message
        self.run.report(error)
        return rx.empty()


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _told(error: BaseException) -> str:
    """``error`` in one line: our own in its words, any other with its type."""
    kind = "" if isinstance(error, CleverAgentsError) else f"{type(error).__name__}: "
    return " ".join(f"{kind}{error}".removesuffix(": ").split())
