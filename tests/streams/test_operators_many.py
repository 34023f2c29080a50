"""Operators over all messages as one stream: scan, distinct, buffer, take, and those that keep messages in a loop."""

import asyncio
import itertools

import pytest

from cleveragents import Message, StreamRouter
from support.networks import agents, pass_through, route, run, through

# --- scan, distinct, buffer -----------------------------------------------------------------------------


def test_scan_begins_with_the_first_message_or_with_its_seed():
    assert asyncio.run(pass_through(through({"scan": {"value": "accumulated + message"}}), [1, 2, 3])) == [1, 3, 6]
    seeded = {"scan": {"value": "accumulated + [message]", "seed": []}}
    assert asyncio.run(pass_through(through(seeded), [1, 2])) == [[1], [1, 2]]


def test_a_message_that_scan_fails_on_leaves_what_was_accumulated():
    results = asyncio.run(pass_through(through({"scan": {"value": "accumulated + message"}}), [1, "x", 2]))

    assert [result for result in results if isinstance(result, int)] == [1, 3]
    assert len(results) == 3


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1, True, 1.0, "1", 1, "1"], [1, True, 1.0, "1"]),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}], [{"a": 1, "b": 2}, {"a": 1}]),
        (["x" * 1000, "x" * 999 + "y", "x" * 1000], ["x" * 1000, "x" * 999 + "y"]),
        ([[1], [1], [[1]], [], None, ""], [[1], [[1]], [], None, ""]),
    ],
)
def test_distinct_compares_as_json(given, expected):
    results = asyncio.run(pass_through(through({"distinct": "message"}), given))

    assert [(type(result), result) for result in results] == [(type(value), value) for value in expected]


def test_distinct_by_an_expression_keeps_the_first_of_each_value():
    given = [{"id": 1, "n": "a"}, {"id": 2, "n": "b"}, {"id": 1, "n": "c"}]

    assert asyncio.run(pass_through(through({"distinct": "message['id']"}), given)) == given[:2]


def test_buffer_gives_what_is_left_when_nothing_more_comes():
    assert asyncio.run(pass_through(through({"buffer": {"count": 3}}), range(7))) == [[0, 1, 2], [3, 4, 5], [6]]
    assert asyncio.run(pass_through(through({"buffer": {"seconds": 3600}}), range(3))) == [[0, 1, 2]]


def test_a_run_of_one_message_does_not_wait_for_time_to_pass():
    through_time = [{"debounce": 3600}, {"throttle": 3600}, {"buffer": {"seconds": 3600, "count": 9}}]

    assert run(through(*through_time), "x").outputs == [["x"]]


# --- take -----------------------------------------------------------------------------------------------


def test_take_ends_a_run_whose_input_never_does():
    assert asyncio.run(pass_through(through({"take": 3}), itertools.count())) == [0, 1, 2]


def test_an_agent_before_take_is_cancelled_when_take_has_had_enough():
    async def scenario():
        begun: list[int] = []
        ended: list[int] = []
        second_begun = asyncio.Event()

        async def work(message):
            begun.append(message.content)
            if message.content == 2:
                second_begun.set()
            try:
                if message.content == 2:
                    await asyncio.Event().wait()
            finally:
                ended.append(message.content)
            return message.content

        async def hold(message):
            await second_begun.wait()
            return message.content

        router = through("work", "hold", {"take": 1}, work=work, hold=hold)
        results = await asyncio.wait_for(pass_through(router, [1, 2, 3]), 30)
        return results, begun, ended

    assert asyncio.run(scenario()) == ([1], [1, 2], [1, 2])


def test_a_loop_whose_route_has_had_enough_ends():
    routes = [
        route("a", ["input", "b"], ["up", {"take": 3}]),
        route("b", "a", ["up"]),
        route("c", "a", [], "output"),
    ]

    assert run(StreamRouter(agents(up=lambda m: m.content + 1), routes), 0).outputs == [1, 3, 5]


def test_messages_that_still_wait_when_take_has_had_enough_do_not_keep_their_loop_alive():
    sources = [route(name, "input") for name in ("one", "two", "three")]
    routes = [
        *sources,
        route("a", ["one", "two", "three", "b"], ["up", {"take": 1}]),
        route("b", "a", [{"buffer": {"count": 5}}]),
        route("c", "b", [], "output"),
    ]
    router = StreamRouter(agents(up=lambda m: m.content + 1), routes)

    result = asyncio.run(asyncio.wait_for(router.run(Message(0)), 30))

    assert result.outputs == [[1]]


# --- operators that keep messages, in a loop ------------------------------------------------------------


@pytest.mark.parametrize(
    "step", [{"delay": 0.001}, {"debounce": 0.001}, {"buffer": {"seconds": 0.001}}, {"buffer": {"count": 1}}], ids=str
)
def test_a_loop_goes_on_while_an_operator_keeps_its_message(step):
    def up(message):
        number = message.content[0] if isinstance(message.content, list) else message.content
        return number + 1

    routes = [
        route("a", ["input", "b"], ["up"]),
        route("b", "a", ["low", step]),
        route("c", "a", ["high"], "output"),
    ]
    parts = agents(
        up=up, low=lambda m: m.content if m.content < 4 else None, high=lambda m: m.content if m.content == 4 else None
    )

    assert run(StreamRouter(parts, routes), 0).outputs == [4]


def test_what_comes_back_after_a_loop_has_ended_is_reported():
    routes = [
        route("a", ["input", "b"], ["same"]),
        route("b", "a", [{"buffer": {"count": 2}}]),
        route("c", "b", [], "output"),
    ]

    result = run(StreamRouter(agents(same=lambda m: m.content), routes), "x")

    assert result.outputs == [["x"]]
    assert [str(error) for error in result.errors] == [
        "route a: a message came back after the loop had ended: a -> b -> a"
    ]
