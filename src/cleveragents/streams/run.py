"""One run of a network: messages go in, outputs and errors come out, one global context is shared."""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import reduce
from operator import add
from typing import Any, Self

from reactivex import Observable, abc  # noqa: TC002 - loaded by the modules below all the same
from reactivex.disposable import CompositeDisposable
from reactivex.scheduler.eventloop import AsyncIOScheduler
from reactivex.subject import Subject

from cleveragents.agents.agent import Agent, Message
from cleveragents.agents.events import AgentEvent, current_listener, listening
from cleveragents.config.operators import ModifierConfig, OperatorConfig
from cleveragents.config.vocabulary import FAIL, INPUT, OUTPUT
from cleveragents.conversation.usage import Usage
from cleveragents.errors import AgentError, InvalidValueError, StreamError
from cleveragents.streams.network import Network
from cleveragents.streams.operators import OPERATORS, agent, until
from cleveragents.streams.parcel import PATH_LENGTH, Parcel
from cleveragents.streams.stage import Operator, Stage
from cleveragents.values.json import json_object, json_value
from cleveragents.values.merge import Removal, merged

MAX_IN_FLIGHT = 64
"""Messages that may wait for agents and expressions before the next one is taken from the input."""

BREATH = 128
"""Messages after which other tasks get their turn, even when nothing had to wait."""

Failure = AgentError | StreamError


class LivePart:
    """Routes that end together: when nothing can come in any more and, in a loop, nothing is held."""

    def __init__(self, *, loop: bool) -> None:
        self.loop = loop
        self.chains: list[Chain] = []
        self.followers: set[LivePart] = set()
        self.feeders = 0
        self.living = 0
        self.held = 0

    @property
    def may_end(self) -> bool:
        """Whether one of its routes can be told that nothing more will come."""
        return not self.feeders and not (self.loop and self.held)


class Chain:
    """A route in a run: messages come in at ``subject``, go through its stages, and on to ``targets``.

    ``ways`` are the targets, and whether the output is one, for what an ``until`` says of a message: nothing (None),
    that it leaves the loop (True), or that it stays (False).
    """

    def __init__(self, name: str, part: LivePart) -> None:
        self.name = name
        self.part = part
        self.subject: Subject[Parcel] = Subject()
        self.targets: list[Chain] = []
        self.to_output = False
        self.ways: dict[bool | None, tuple[Sequence[Chain], bool]] = {}
        self.ended = False
        self.entered = 0
        self.left = 0
        self.why_ended = ""


class Run:
    """One run: an async context manager, in which ``results`` passes messages through; made by ``StreamRouter.start``.

    ``context`` is the global context as it is now, replaced at each change and never changed in place. Leaving
    the run cancels what still works, and waits until that has ended.
    """

    def __init__(
        self,
        network: Network,
        agents: Mapping[str, Agent],
        context: Mapping[str, Any],
        hop_limit: int,
        on_error: Mapping[str, str],
    ) -> None:
        self.agents = agents
        self.on_error = on_error
        self.context: Mapping[str, Any] = json_object(context, "context")
        self.usages: dict[str, Usage] = {}
        self.in_flight = 0
        self.tasks: set[asyncio.Task[Parcel | None]] = set()
        self._network = network
        self._hop_limit = hop_limit
        self._queue: deque[tuple[Chain, Parcel]] = deque()
        self._results: deque[Message | Failure] = deque()
        self._moved = asyncio.Event()
        self._bug: Exception | None = None
        self._listener_failed = False
        self._listener = current_listener()
        self._subscriptions = CompositeDisposable()

    async def __aenter__(self) -> Self:
        self.clock = _Clock(self)
        with listening(self.tell if self._listener else None):
            self.scope = contextvars.copy_context()
        self._build()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._subscriptions.dispose()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    @property
    def usage(self) -> Usage:
        """What all llms used together."""
        return reduce(add, self.usages.values()) if self.usages else Usage(cost=Decimal(0))

    async def results(self, messages: Iterable[Message]) -> AsyncGenerator[Message | Failure, None]:
        """Pass ``messages`` through, and give outputs and errors in the order in which they come. To be called once.

        A message is taken when there is room for it, and none when all routes have had enough, so ``messages`` may
        be long, or be made as it goes.
        """
        for number, message in enumerate(messages, 1):
            self._take(message)
            self._drain()
            while self._results or self.in_flight >= MAX_IN_FLIGHT:
                if self._results:
                    yield self._results.popleft()
                else:
                    await self._progress()
            if not self._living:
                return
            if not number % BREATH:
                await asyncio.sleep(0)
        for chain in self._inputs:
            chain.part.feeders -= 1
        while True:
            self._end_what_may()
            while self._results:
                yield self._results.popleft()
            if not self._living:
                return
            await self._progress()

    def why_nothing(self) -> str:
        """Where the messages of a run without any output ended."""
        chains = self._chains.values()
        for chain in chains:
            if chain.why_ended:
                return chain.why_ended
        for chain in chains:
            if chain.entered and not chain.left:
                return f"route {chain.name} passed nothing on"
        for chain in chains:
            if chain.left and not chain.targets and not chain.to_output:
                return f"route {chain.name} leads nowhere; give it 'to: {OUTPUT}'"
        return f"no route leads from {INPUT} to {OUTPUT}"

    # --- for stages -----------------------------------------------------------------------------------------

    def change(self, changes: Mapping[str, Any], removed: Sequence[Removal]) -> None:
        """Merge what an agent did to the global context into it."""
        if changes or removed:
            self.context = merged(self.context, changes, removed)

    def count(self, usage: Usage | None) -> None:
        """Add what an agent used."""
        if usage is not None:
            before = self.usages.get(usage.llm)
            self.usages[usage.llm] = usage if before is None else before + usage

    def report(self, error: Failure) -> None:
        """Give ``error`` out as what came of a message."""
        self._results.append(error)

    @contextmanager
    def moving(self) -> Iterator[None]:
        """Around what moves messages from a callback: afterwards the run goes on, or ends with the bug met there."""
        try:
            yield
        except Exception as bug:  # noqa: BLE001 - raised where the run is awaited; in a callback it would be lost
            self._bug = bug
        finally:
            self._moved.set()

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

    # --- routes in motion -----------------------------------------------------------------------------------

    def _build(self) -> None:
        self._parts: list[LivePart] = []
        self._chains: dict[str, Chain] = {}
        for routes, loop in self._network.parts:
            part = LivePart(loop=loop)
            part.chains = [Chain(name, part) for name in routes]
            part.living = len(part.chains)
            self._chains |= {chain.name: chain for chain in part.chains}
            self._parts.append(part)
        for chain in self._chains.values():
            targets = self._network.targets[chain.name]
            chain.to_output = OUTPUT in targets
            chain.targets = [self._chains[target] for target in targets if target != OUTPUT]
            chain.ways = dict.fromkeys((None, True, False), (chain.targets, chain.to_output))
            if self._network.routes[chain.name].until is not None:
                chain.ways[True] = (
                    [target for target in chain.targets if target.part is not chain.part],
                    chain.to_output,
                )
                chain.ways[False] = [target for target in chain.targets if target.part is chain.part], False
            chain.part.followers |= {target.part for target in chain.targets if target.part is not chain.part}
        for part in self._parts:
            for follower in part.followers:
                follower.feeders += 1
        self._inputs = [self._chains[target] for target in self._network.targets[INPUT]]
        for chain in self._inputs:
            chain.part.feeders += 1
        self._living = len(self._chains)
        for chain in self._chains.values():
            self._subscribe(chain)

    def _subscribe(self, chain: Chain) -> None:
        stream: Observable[Parcel] = chain.subject
        for operator in self._operators(chain):
            stream = operator(stream)

        def passed(parcel: Parcel) -> None:
            chain.left += 1
            targets, to_output = chain.ways[parcel.leaves]
            for target in targets:
                self._queue.append((target, parcel))
            if to_output:
                self._results.append(parcel.message)

        def broken(bug: Exception) -> None:
            with self.moving():
                raise bug

        def completed() -> None:
            self._living -= 1
            chain.part.living -= 1
            if not chain.part.living:
                for follower in chain.part.followers:
                    follower.feeders -= 1

        self._subscriptions.add(stream.subscribe(passed, broken, completed))

    def _operators(self, chain: Chain) -> list[Operator]:
        """The steps of a route; a modifier goes to the stage of the step before it."""
        route = self._network.routes[chain.name]
        operators: list[Operator] = []
        stage = None
        for step in route.through:
            if isinstance(step, str):
                stage = Stage(self, chain, step, is_agent=True, on_error=self.on_error.get(step, route.on_error))
                operators.append(agent(step, stage))
                continue
            kind: type[OperatorConfig] = type(step)
            if isinstance(step, ModifierConfig) and stage is not None:
                stage.modifiers.append(OPERATORS[kind](step, stage))
            else:
                stage = Stage(self, chain, next(iter(kind.model_fields)), on_error=route.on_error)
                operators.append(OPERATORS[kind](step, stage))
        if route.until is not None:
            # Nobody can stand in for the decision itself, so its failure is always reported.
            operators.append(until(route.until, Stage(self, chain, "until", on_error=FAIL)))
        return operators

    def _take(self, message: Message) -> None:
        """Put ``message`` at the beginning of every route that begins at the input."""
        try:
            content = json_value(message.content, "message")
        except InvalidValueError as error:
            refusal = StreamError("", str(error))
            refusal.message = message
            self.report(refusal)
            return
        if content is not message.content:
            message = replace(message, content=content)
        parcel = Parcel(message, self.context)
        for chain in self._inputs:
            self._queue.append((chain, parcel))

    def _drain(self) -> None:
        """Hand on what is queued. Routes are joined by a queue, not by calls, so that a loop needs no stack."""
        queue = self._queue
        while queue:
            chain, parcel = queue.popleft()
            if chain.part.loop:
                if chain.ended or parcel.hops >= self._hop_limit:
                    self._turn_away(chain, parcel)
                    continue
                parcel = parcel.entering(chain.name)
            chain.entered += 1
            chain.subject.on_next(parcel)

    def _turn_away(self, chain: Chain, parcel: Parcel) -> None:
        path = " -> ".join([*(["..."] if parcel.hops > PATH_LENGTH else []), *parcel.path, chain.name])
        if chain.ended:
            reason = f"a message came back after the loop had ended: {path}"
        else:
            reason = f"the limit of {self._hop_limit} hops is reached: {path}; end the loop sooner, or raise hop_limit"
        error = StreamError(chain.name, reason)
        error.message = parcel.message
        self.report(error)

    def _end_what_may(self) -> None:
        """Tell routes that nothing more comes, so that operators give out what they keep for the end."""
        self._drain()
        while True:
            ready = (chain for part in self._parts if part.may_end for chain in part.chains if not chain.ended)
            chain = next(ready, None)
            if chain is None:
                return
            chain.ended = True
            chain.subject.on_completed()
            self._drain()

    async def _progress(self) -> None:
        await self._moved.wait()
        self._moved.clear()
        if self._bug is not None:
            raise self._bug
        self._drain()


class _Clock(AsyncIOScheduler):
    """The event loop's time for operators: steady when the clock on the wall is set, and telling the run it moved."""

    def __init__(self, run: Run) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(loop)
        self._run = run
        self._start = datetime.fromtimestamp(0, tz=UTC)

    @property
    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._loop.time())

    def invoke_action(self, action: abc.ScheduledAction[Any], state: Any = None) -> abc.DisposableBase:
        with self._run.moving():
            return super().invoke_action(action, state)
