"""Asking an agent: a message becomes its message, and its reply the next one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cleveragents.agents.agent import ANSWERED_BY, Message, Reply
from cleveragents.agents.events import AgentAnswered, ContextConflict, ErrorPassedOver
from cleveragents.config.vocabulary import FAIL, SKIP
from cleveragents.errors import AgentError, CleverAgentsError, StreamError
from cleveragents.streams.live import LiveRoute
from cleveragents.streams.parcel import Parcel
from cleveragents.streams.state import RunState
from cleveragents.values.json import json_object, json_value
from cleveragents.values.merge import overwritten, value_at


class AskedAgents:
    """The agents of a run, as they are asked at ``step`` of a route."""

    def __init__(self, state: RunState, route: LiveRoute, step: str) -> None:
        self._state = state
        self._route = route
        self._step = step

    async def ask(self, agent: str, parcel: Parcel) -> Parcel | None:
        """The agent's reply. It sees a copy of the context as it is now; whatever it raises becomes an AgentError."""
        began = time.perf_counter()
        failure = ""
        try:
            return self._next(parcel, agent, await self._reply(agent, parcel.message))
        except AgentError as error:
            failure = error.reason
            raise
        except asyncio.CancelledError:
            failure = "cancelled"
            raise
        finally:
            self._state.tell(AgentAnswered(agent, self._route.name, time.perf_counter() - began, failure))

    async def consult(self, agent: str, parcel: Parcel) -> Parcel | None:
        """The reply of an agent that is one of several in a step: its own ``on_error`` takes effect here."""
        try:
            return await self.ask(agent, parcel)
        except AgentError as error:
            stand_in = self._state.on_error.get(agent, FAIL)
            if stand_in == FAIL:
                raise
            self.pass_over(error, stand_in)
            return None if stand_in == SKIP else await self.ask(stand_in, parcel)

    def pass_over(self, error: AgentError | StreamError, on_error: str) -> None:
        """Tell that ``error`` is not reported, since ``on_error`` leaves its message out, or has an agent stand in."""
        stand_in = "" if on_error == SKIP else on_error
        if not stand_in:
            self._route.why_ended = f"on_error in route {self._route.name} left out what failed: {error}"
        self._state.tell(ErrorPassedOver(self._route.name, str(error), stand_in))

    async def _reply(self, agent: str, asked: Message) -> Reply:
        """What the agent replies to ``asked``, accepted."""
        asking, before = self._state.agents[agent], self._state.context
        try:
            message = Message(
                json_value(asked.content, "message"),
                json_object(before, "context"),
                dict(asked.metadata),
                asked.conversation,
            )
            return self._accepted(agent, await asking.process(message), before)
        except AgentError as error:
            self._state.count(error.usage)
            raise
        except asyncio.CancelledError as cancelled:
            self._state.count(getattr(cancelled, "usage", None))
            if _is_being_cancelled():
                raise
            raise AgentError(agent, "was cancelled") from None
        except (Exception, SystemExit) as error:
            # An OSError is a connection refused, a name not resolved, a time-out: the next attempt may do better.
            raise AgentError(agent, _told(error), temporary=isinstance(error, OSError)) from error

    def _accepted(self, agent: str, reply: Reply, before: Mapping[str, Any]) -> Reply:
        """A reply, all of which can be kept: its usage is counted, its changes are made.

        ``before`` is the context that the agent has seen.
        """
        if not isinstance(reply, Reply):
            raise AgentError(agent, f"gave back a value of type {type(reply).__name__}, not a Reply")
        self._state.count(reply.usage)
        if reply.cut_off:
            self._state.cut_off[agent] = reply.cut_off
        if _is_being_cancelled():
            # It has ended all the same, too late: somebody else was first, or its time was up.
            raise asyncio.CancelledError
        content, changes = json_value(reply.content, "result"), json_object(reply.changes, "changes")
        now = self._state.context
        self._state.change(changes, reply.removed)
        if now is not before:
            for path in overwritten(before, now, changes, reply.removed):
                old, new = value_at(now, path), value_at(self._state.context, path)
                self._state.tell(ContextConflict(agent, self._route.name, path, old, new))
        return replace(reply, content=content)

    def _next(self, parcel: Parcel, agent: str, reply: Reply) -> Parcel | None:
        """What goes on after the agent has answered ``parcel``; nothing where the reply has no content."""
        # Later steps get an llm's answer, not what it said before it called tools.
        content = reply.said[-1].text if reply.said else reply.content
        if content is None:
            self._route.swallow(self._step)
            return None
        asked = parcel.message
        if asked.conversation is not None and getattr(self._state.agents[agent], "takes_conversation", False):
            parcel = parcel.without_conversation()
        metadata = {**asked.metadata, ANSWERED_BY: agent}
        return parcel.carrying(content, self._state.context, metadata, reply.said, reply.cut_off)


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _told(error: BaseException) -> str:
    """``error`` in one line: our own in its words, any other with its type."""
    kind = "" if isinstance(error, CleverAgentsError) else f"{type(error).__name__}: "
    return " ".join(f"{kind}{error}".removesuffix(": ").split())
