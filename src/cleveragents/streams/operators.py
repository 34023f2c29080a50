"""The operators of a route's ``through:``, one function each. Names and meaning follow ReactiveX.

Such a function takes the operator's settings and its stage, and gives a reactivex operator over parcels: over the
stream of all messages, or, for those that change how the step before them works, over that of a single one. An
exception in the stream of all messages would be the end of it; ``Stage.in_turn`` keeps those of single ones out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from cleveragents.config.models import RouteConfig
from cleveragents.config.operators import (
    BufferConfig,
    DebounceConfig,
    DelayConfig,
    DistinctConfig,
    FilterConfig,
    MapConfig,
    ModifierConfig,
    OperatorConfig,
    ParallelConfig,
    RetryConfig,
    ScanConfig,
    SkipConfig,
    SwitchConfig,
    TakeConfig,
    ThrottleConfig,
    TimeoutConfig,
)
from cleveragents.config.vocabulary import FAIL
from cleveragents.streams.joins import JOINS, identity
from cleveragents.streams.live import LiveRoute
from cleveragents.streams.parcel import Parcel
from cleveragents.streams.stage import Operator, Stage
from cleveragents.streams.state import RunState

LONGEST_BACKOFF = 60.0
"""Seconds past which ``retry`` does not double its wait."""

# --- one message after the other ------------------------------------------------------------------------


def agent(name: str, stage: Stage) -> Operator:
    """The agent's replies."""

    async def reply(parcel: Parcel) -> Parcel | None:
        return await stage.agents.ask(name, parcel)

    return stage.in_turn(lambda parcel: stage.awaiting(reply, parcel))


def until(condition: str, stage: Stage) -> Operator:
    """Each message, marked with whether it leaves the loop that it is in; what ends a route that has ``until``."""

    async def marked(parcel: Parcel) -> Parcel | None:
        return parcel.bound(out=bool(await stage.evaluate(condition, parcel)))

    return stage.in_turn(lambda parcel: stage.awaiting(marked, parcel))


def filter_(settings: FilterConfig, stage: Stage) -> Operator:
    """The messages of which the condition is true."""

    async def kept(parcel: Parcel) -> Parcel | None:
        if await stage.evaluate(settings.filter, parcel):
            return parcel
        stage.swallow()
        return None

    return stage.in_turn(lambda parcel: stage.awaiting(kept, parcel))


def map_(settings: MapConfig, stage: Stage) -> Operator:
    """Each message with the expression's value as its content; where that is None, nothing goes on."""

    async def mapped(parcel: Parcel) -> Parcel | None:
        return stage.passed_on(parcel, await stage.evaluate(settings.map, parcel))

    return stage.in_turn(lambda parcel: stage.awaiting(mapped, parcel))


def scan(settings: ScanConfig, stage: Stage) -> Operator:
    """Each message with what all messages so far amount to as its content."""
    began = "seed" in settings.scan.model_fields_set
    accumulated = settings.scan.seed

    async def scanned(parcel: Parcel) -> Parcel | None:
        nonlocal began, accumulated
        if began:
            accumulated = await stage.evaluate(settings.scan.value, parcel, accumulated=accumulated)
        else:
            began, accumulated = True, parcel.message.content
        return stage.passed_on(parcel, accumulated)

    return stage.in_turn(lambda parcel: stage.awaiting(scanned, parcel))


def switch(settings: SwitchConfig, stage: Stage) -> Operator:
    """The replies of the agent of the first case that is true; a message for which none is goes on as it is."""

    async def switched(parcel: Parcel) -> Parcel | None:
        for case in settings.switch:
            if case.when is None or await stage.evaluate(case.when, parcel):
                return await stage.agents.consult(case.agent, parcel)
        return parcel

    return stage.in_turn(lambda parcel: stage.awaiting(switched, parcel))


def parallel(settings: ParallelConfig, stage: Stage) -> Operator:
    """What several agents reply to one message, joined."""
    names, join = settings.parallel.agents, JOINS[settings.parallel.join]

    def asked(name: str, parcel: Parcel) -> Observable[Parcel]:
        async def reply(parcel: Parcel) -> Parcel | None:
            return await stage.agents.consult(name, parcel)

        return stage.awaiting(reply, parcel)

    return stage.in_turn(lambda parcel: join({name: asked(name, parcel) for name in names}, parcel, stage))


# --- modifiers of the step before -----------------------------------------------------------------------


def retry(settings: RetryConfig, stage: Stage) -> Operator:
    """The step once more when it has failed for a reason that may pass, with waits that double each time.

    An llm's server that says when it wants to be asked again is obeyed; one that says later than that is given up.
    """
    attempts, backoff = settings.retry.attempts, settings.retry.backoff

    def attempt(number: int, step: Observable[Parcel]) -> Observable[Parcel]:
        def after(error: Exception, _: Observable[Parcel]) -> Observable[Parcel]:
            wished = getattr(error, "retry_after", None) or 0.0
            if number >= attempts or not getattr(error, "temporary", False) or wished > LONGEST_BACKOFF:
                return rx.throw(error)
            wait = max(wished, min(backoff * 2 ** (number - 1), max(backoff, LONGEST_BACKOFF)))
            return rx.timer(wait, scheduler=stage.scheduler).pipe(ops.flat_map(lambda _: attempt(number + 1, step)))

        return step.pipe(ops.catch(after))

    return lambda step: attempt(1, step)


def timeout(settings: TimeoutConfig, stage: Stage) -> Operator:
    """The step, or an error when it has given nothing in time."""

    def late(_: Any) -> Observable[Parcel]:
        return rx.throw(stage.error(f"gave nothing within {settings.timeout:g} s", temporary=True))

    return ops.timeout(settings.timeout, rx.defer(late), stage.scheduler)


# --- all messages as one stream -------------------------------------------------------------------------


def buffer(settings: BufferConfig, stage: Stage) -> Operator:
    """Lists of messages, complete by number or by time; the rest when nothing more comes."""
    count, seconds = settings.buffer.count, settings.buffer.seconds
    gathered: Callable[[Observable[Parcel]], Observable[list[Parcel]]]
    if count is None:
        gathered = stage.keeping(ops.buffer_with_time(seconds or 0, scheduler=stage.scheduler), together=True)
    elif seconds is None:
        gathered = ops.buffer_with_count(count)
    else:
        gathered = stage.keeping(ops.buffer_with_time_or_count(seconds, count, stage.scheduler), together=True)

    def not_empty(parcels: list[Parcel]) -> bool:
        return bool(parcels)

    def joined(parcels: list[Parcel]) -> Parcel:
        furthest = max(parcels, key=lambda parcel: parcel.hops)
        contents = [parcel.message.content for parcel in parcels]
        return furthest.carrying(contents, stage.state.context, parcels[-1].message.metadata)

    return rx.compose(gathered, ops.filter(not_empty), ops.map(joined))


def debounce(settings: DebounceConfig, stage: Stage) -> Operator:
    """The messages after which it stays quiet for a while."""
    return stage.keeping(ops.debounce(settings.debounce, stage.scheduler), together=True)


def throttle(settings: ThrottleConfig, stage: Stage) -> Operator:
    """The first message, and then the first one after each pause."""
    return ops.throttle_first(settings.throttle, stage.scheduler)


def distinct(settings: DistinctConfig, stage: Stage) -> Operator:
    """The messages whose value has not been there before."""
    seen: set[Any] = set()

    def is_new(value: Any) -> bool:
        key = identity(value)
        if key in seen:
            return False
        seen.add(key)
        return True

    async def kept(parcel: Parcel) -> Parcel | None:
        if is_new(await stage.evaluate(settings.distinct, parcel)):
            return parcel
        stage.swallow()
        return None

    if settings.distinct.strip() == "message":
        # Not ops.distinct, which compares each value with all before it, one by one.
        return ops.filter(lambda parcel: is_new(parcel.message.content))
    return stage.in_turn(lambda parcel: stage.awaiting(kept, parcel))


def take(settings: TakeConfig, _: Stage) -> Operator:
    """The first messages."""
    return ops.take(settings.take)


def skip(settings: SkipConfig, _: Stage) -> Operator:
    """All but the first messages."""
    return ops.skip(settings.skip)


def delay(settings: DelayConfig, stage: Stage) -> Operator:
    """The same messages, later."""
    return stage.keeping(ops.delay(settings.delay, stage.scheduler), together=False)


# --- the table ------------------------------------------------------------------------------------------

OPERATORS: dict[type[OperatorConfig], Callable[[Any, Stage], Operator]] = {
    BufferConfig: buffer,
    DebounceConfig: debounce,
    DelayConfig: delay,
    DistinctConfig: distinct,
    FilterConfig: filter_,
    MapConfig: map_,
    ParallelConfig: parallel,
    RetryConfig: retry,
    ScanConfig: scan,
    SkipConfig: skip,
    SwitchConfig: switch,
    TakeConfig: take,
    ThrottleConfig: throttle,
    TimeoutConfig: timeout,
}


def composed(settings: RouteConfig, route: LiveRoute, state: RunState) -> Operator:
    """All steps of a route as one operator; a modifier goes to the stage of the step before it."""

    def takes(parcel: Parcel) -> bool:
        return state.budget.takes(route.name, parcel)

    operators: list[Operator] = []
    stage = None
    for step in settings.through:
        if isinstance(step, str):
            on_error = state.on_error.get(step, settings.on_error)
            stage = Stage(state, route, step, is_agent=True, on_error=on_error)
            operators += [agent(step, stage), ops.filter(takes)]
            continue
        kind: type[OperatorConfig] = type(step)
        if isinstance(step, ModifierConfig) and stage is not None:
            stage.modifiers.append(OPERATORS[kind](step, stage))
        else:
            stage = Stage(state, route, next(iter(kind.model_fields)), on_error=settings.on_error)
            operators += [OPERATORS[kind](step, stage), ops.filter(takes)]
    if settings.until is not None:
        # Nobody can stand in for the decision itself, so its failure is always reported.
        operators.append(until(settings.until, Stage(state, route, "until", on_error=FAIL)))
    return rx.compose(*operators)
