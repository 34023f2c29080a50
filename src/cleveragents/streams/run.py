"""One run of a network: messages go in, outputs and errors come out, one global context is shared."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import reduce
from operator import add
from typing import Any, Self

from reactivex.disposable import CompositeDisposable

from cleveragents.agents.agent import Agent, Message
from cleveragents.conversation.usage import Usage
from cleveragents.errors import InvalidValueError, StreamError
from cleveragents.streams.budget import Budget
from cleveragents.streams.live import LiveNetwork, LiveRoute
from cleveragents.streams.network import Network
from cleveragents.streams.operators import composed
from cleveragents.streams.parcel import PATH_LENGTH, Parcel
from cleveragents.streams.state import Failure, RunState
from cleveragents.values.json import json_value

MAX_IN_FLIGHT = 64
"""Messages that may wait for agents and expressions before the next one is taken from the input."""

BREATH = 128
"""Messages after which other tasks get their turn, even when nothing had to wait."""


class Run:
    """One run: an async context manager, in which ``results`` passes messages through; made by ``StreamRouter.start``.

    Leaving the run cancels what still works, and waits until that has ended.
    """

    def __init__(
        self,
        network: Network,
        agents: Mapping[str, Agent],
        context: Mapping[str, Any],
        hop_limit: int,
        budget: Budget,
    ) -> None:
        self._network = network
        self._hop_limit = hop_limit
        self._live = LiveNetwork(network)
        self._state = RunState(agents, network.on_error, context, budget)
        self._budget = budget
        self._queue: deque[tuple[LiveRoute, Parcel]] = deque()
        self._subscriptions = CompositeDisposable()

    async def __aenter__(self) -> Self:
        self._state.begin()
        for route in self._live.routes.values():
            self._subscribe(route)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    async def end(self) -> None:
        """Cancel what still works, and wait until that has ended: from then on all is known of what was used."""
        self._subscriptions.dispose()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)

    @property
    def context(self) -> Mapping[str, Any]:
        """The global context as it is now; never changed in place."""
        return self._state.context

    @property
    def cut_off(self) -> Mapping[str, str]:
        """Why the last answer of an agent that was not whole was cut off, by the agent's name."""
        return self._state.cut_off

    @property
    def usages(self) -> Mapping[str, Usage]:
        """What each llm has used, by its name."""
        return self._state.usages

    @property
    def usage(self) -> Usage:
        """What all llms used together."""
        return reduce(add, self.usages.values()) if self.usages else Usage(cost=Decimal(0))

    async def results(self, messages: Iterable[Message]) -> AsyncGenerator[Message | Failure, None]:
        """Pass ``messages`` through, and give outputs and errors in the order in which they come. To be called once.

        A message is taken when there is room for it, and none when all routes have had enough, so ``messages`` may
        be long, or be made as it goes. When the run has put out more than it may, the last result is the error that
        says so.
        """
        live, state, results = self._live, self._state, self._state.results
        for number, message in enumerate(messages, 1):
            self._take(message)
            self._drain()
            while results or (state.in_flight >= MAX_IN_FLIGHT and not self._is_over):
                if results:
                    yield results.popleft()
                else:
                    await self._progress()
            if self._is_over:
                break
            if not number % BREATH:
                await asyncio.sleep(0)
        else:
            live.close_input()
            while True:
                self._end_what_may()
                while results:
                    yield results.popleft()
                if self._is_over:
                    break
                await self._progress()
        if self._budget.exceeded is not None:
            yield self._budget.exceeded

    @property
    def _is_over(self) -> bool:
        """Whether nothing more may come: all routes have ended, or the run has put out more than it may."""
        return not self._live.living or self._budget.exceeded is not None

    def why_nothing(self) -> str:
        """Where the messages of a run without any output ended."""
        return self._live.why_nothing()

    def _subscribe(self, route: LiveRoute) -> None:
        """Let what comes out of ``route`` go on to where it leads."""
        settings = self._network.routes[route.name]
        through = composed(settings, route, self._state)
        counted = 1 if settings.through else 0

        def passed(parcel: Parcel) -> None:
            route.left += 1
            targets, to_output = route.ways[parcel.leaves]
            # What a step has put out is counted; what a split makes of it is not, nor what passes no step at all.
            copies = len(targets) + to_output
            if copies > counted and not self._budget.takes(route.name, parcel, copies - counted):
                return
            for target in targets:
                self._queue.append((target, parcel))
            if to_output:
                self._state.results.append(parcel.message)

        def broken(bug: Exception) -> None:
            with self._state.moving():
                raise bug

        def completed() -> None:
            self._live.has_ended(route)

        self._subscriptions.add(through(route.subject).subscribe(passed, broken, completed))

    def _take(self, message: Message) -> None:
        """Put ``message`` at the beginning of every route that begins at the input."""
        self._budget.grow()
        try:
            content = json_value(message.content, "message")
        except InvalidValueError as error:
            refusal = StreamError("", str(error))
            refusal.message = message
            self._state.report(refusal)
            return
        if content is not message.content:
            message = replace(message, content=content)
        parcel = Parcel(message, self._state.context, weighed=True)
        for route in self._live.inputs:
            self._queue.append((route, parcel))

    def _drain(self) -> None:
        """Hand on what is queued. Routes are joined by a queue, not by calls, so that a loop needs no stack."""
        queue = self._queue
        while queue and self._budget.exceeded is None:
            route, parcel = queue.popleft()
            if route.part.loop:
                if route.ended or parcel.hops >= self._hop_limit:
                    self._turn_away(route, parcel)
                    continue
                parcel = parcel.entering(route.name)
            route.entered += 1
            route.subject.on_next(parcel)

    def _turn_away(self, route: LiveRoute, parcel: Parcel) -> None:
        path = " -> ".join([*(["..."] if parcel.hops > PATH_LENGTH else []), *parcel.path, route.name])
        if route.ended:
            reason = f"a message came back after the loop had ended: {path}"
        else:
            reason = f"the limit of {self._hop_limit} hops is reached: {path}; end the loop sooner, or raise hop_limit"
        error = StreamError(route.name, reason)
        error.message = parcel.without_conversation().message  # an error must not hold a store
        self._state.report(error)

    def _end_what_may(self) -> None:
        """Tell routes that nothing more comes, so that operators give out what they keep for the end."""
        self._drain()
        while self._budget.exceeded is None and (route := self._live.next_to_end()) is not None:
            route.ended = True
            route.subject.on_completed()
            self._drain()

    async def _progress(self) -> None:
        await self._state.moved()
        self._drain()
