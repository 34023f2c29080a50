"""Every operator gives what the operator of the same name in reactivex gives, whatever comes in."""

import asyncio
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, settings
from hypothesis import strategies as st
from reactivex import operators as ops

from cleveragents import StreamRouter
from cleveragents.config import OPERATORS
from cleveragents.errors import AgentError
from support.networks import agents, pass_through, route
from support.virtual import Timeline

contents = st.sampled_from(["a", "b", "c", "d"])


@st.composite
def happenings(draw):
    """Messages at whole seconds, several at once too, and mostly an end."""
    time = 1.0
    moments = []
    for gap, content in draw(st.lists(st.tuples(st.integers(0, 4), contents), max_size=12)):
        time += gap
        moments.append((time, content))
    if draw(st.integers(0, 4)):
        moments.append((time + draw(st.integers(0, 4)), "|"))
    return moments


counts = st.integers(1, 5)
seconds = st.integers(1, 6).map(float)

TIMED: dict[str, Any] = {
    "take": (counts, lambda value, _: ops.take(value)),
    "skip": (counts, lambda value, _: ops.skip(value)),
    "distinct": (st.just("message"), lambda _, __: ops.distinct()),
    "delay": (seconds, ops.delay),
    "debounce": (seconds, ops.debounce),
    "throttle": (seconds, ops.throttle_first),
    "buffer": (
        st.builds(dict, count=counts)
        | st.builds(dict, seconds=seconds)
        | st.builds(dict, count=counts, seconds=seconds),
        lambda value, scheduler: rx.compose(buffered(**value, scheduler=scheduler), ops.filter(not_empty)),
    ),
}


def not_empty(items):
    return bool(items)


def buffered(scheduler, count=None, seconds=None):
    if seconds is None:
        return ops.buffer_with_count(count)
    if count is None:
        return ops.buffer_with_time(seconds, scheduler=scheduler)
    return ops.buffer_with_time_or_count(seconds, count, scheduler)


@pytest.mark.parametrize("name", TIMED)
@settings(deadline=None)
@given(data=st.data())
def test_an_operator_over_time_gives_the_same_at_the_same_time(name, data):
    values, theirs = TIMED[name]
    value, moments = data.draw(values), data.draw(happenings())
    one, other = Timeline(), Timeline()

    ours = one.run(one.hot(moments).pipe(one.operator({name: value})), until=80)

    assert ours == other.run(other.hot(moments).pipe(theirs(value, other.scheduler)), until=80)


@settings(deadline=None)
@given(happenings(), seconds)
def test_timeout_gives_the_same_or_is_late_at_the_same_time(moments, value):
    def told(results):
        return [(time, "late" if isinstance(what, Exception) else what) for time, what in results]

    one, other = Timeline(), Timeline()

    ours = one.run(one.hot(moments).pipe(one.operator({"timeout": value})), until=80)

    assert told(ours) == told(
        other.run(other.hot(moments).pipe(ops.timeout(value, scheduler=other.scheduler)), until=80)
    )


def test_every_operator_is_compared():
    elsewhere = {"retry", "timeout"}
    assert {*TIMED, *(name.partition(" ")[0] for name in BY_EXPRESSION), *elsewhere} == set(OPERATORS)


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=6), st.integers(1, 6))
def test_retry_gives_the_same(failures, attempts):
    def source():
        left = iter(failures)

        def next_attempt(_):
            if next(left, False):
                return rx.throw(AgentError("a", "too busy", temporary=True))
            return rx.just("done")

        return rx.defer(next_attempt)

    time, other = Timeline(), Timeline()
    ours = time.run(source().pipe(time.operator({"retry": {"attempts": attempts}})))
    theirs = other.run(source().pipe(ops.retry(attempts)))

    assert [str(what) for _, what in ours] == [str(what) for _, what in theirs]


def even(number):
    return number % 2 == 0


def switched(number):
    if even(number):
        return number + 1
    return number - 1 if number > 5 else number


def both(number):
    return {"up": number + 1, "down": number - 1}


def twice(number):
    return [number, number * 2]


def third(number):
    return number // 3


def total(so_far, number):
    return so_far + number


def listed(so_far, number):
    return [*so_far, number]


BY_EXPRESSION: dict[str, Any] = {
    "filter": ({"filter": "message % 2 == 0"}, ops.filter(even)),
    "map": ({"map": "[message, message * 2]"}, ops.map(twice)),
    "scan": ({"scan": {"value": "accumulated + message"}}, ops.scan(total)),
    "scan with a seed": (
        {"scan": {"value": "[*accumulated, message]", "seed": [0]}},
        ops.scan(listed, [0]),
    ),
    "distinct": ({"distinct": "message // 3"}, ops.distinct(third)),
    "switch": (
        {"switch": [{"when": "message % 2 == 0", "agent": "up"}, {"when": "message > 5", "agent": "down"}]},
        ops.map(switched),
    ),
    "parallel": ({"parallel": {"agents": ["up", "down"]}}, ops.map(both)),
}


@pytest.mark.parametrize("name", BY_EXPRESSION)
@settings(deadline=None, max_examples=15)
@given(numbers=st.lists(st.integers(0, 9), max_size=8))
def test_an_operator_that_waits_for_an_expression_or_an_agent_gives_the_same(name, numbers):
    step, theirs = BY_EXPRESSION[name]
    parts = agents(up=lambda message: message.content + 1, down=lambda message: message.content - 1)
    router = StreamRouter(parts, [route("r", "input", [step], "output")])
    expected: list[object] = []
    rx.from_iterable(numbers).pipe(theirs).subscribe(expected.append)

    assert asyncio.run(pass_through(router, numbers)) == expected
