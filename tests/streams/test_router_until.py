"""``until``: a loop is left when its condition is true, and not before."""

import asyncio

import pytest

from cleveragents import Reply, StreamRouter
from cleveragents.errors import ConfigError, StreamError
from support.campaign import campaign
from support.networks import agents, pass_through, route, run


def up(message):
    return message.content + 1


def test_messages_go_round_until_the_condition_is_true_and_then_out():
    router = StreamRouter(agents(up=up), [route("r", ["input", "r"], ["up"], "output", until="message >= 4")])

    assert run(router, 0).outputs == [4]
    assert run(router, 9).outputs == [10], "at least once round"


def test_the_condition_sees_context_and_metadata():
    def improve(message):
        return Reply(message.content + ".", {"score": message.context["score"] + 3})

    until = "context['score'] > 8 and metadata['agent'] == 'improve'"
    router = StreamRouter(agents(improve=improve), [route("r", ["input", "r"], ["improve"], "output", until=until)])

    result = run(router, "draft", {"score": 0})

    assert (result.outputs, result.context) == (["draft..."], {"score": 9})


def test_a_loop_may_have_several_routes_and_be_left_into_another_one():
    routes = [
        route("draft", ["input", "review"], ["up"]),
        route("review", "draft", ["up"], until="message > 5"),
        route("print", "review", ["show"], "output"),
        route("log", "review", ["log"], "output"),
    ]
    parts = agents(up=up, show=lambda message: f"<{message.content}>", log=lambda message: f"log {message.content}")

    assert sorted(run(StreamRouter(parts, routes), 0).outputs) == ["<6>", "log 6"]


def test_each_message_leaves_by_itself():
    router = StreamRouter(agents(up=up), [route("r", ["input", "r"], ["up"], "output", until="message >= 4")])

    assert sorted(asyncio.run(pass_through(router, [2, 0, 3, 7]))) == [4, 4, 4, 8]


def test_a_condition_may_be_true_by_any_value_that_python_takes_for_true():
    router = StreamRouter(agents(up=up), [route("r", ["input", "r"], ["up"], "output", until="message // 3")])

    assert run(router, 0).outputs == [3]


def test_a_condition_that_fails_is_the_end_of_its_message_and_is_named_whatever_on_error_says():
    router = StreamRouter(
        agents(up=up), [route("r", ["input", "r"], ["up"], "output", until="1 / (message - 2)", on_error="skip")]
    )

    with pytest.raises(StreamError, match=r"^route r: until '1 / \(message - 2\)': ZeroDivisionError"):
        run(router, 1)


def test_a_condition_that_never_becomes_true_ends_at_the_hop_limit_with_the_way_taken():
    router = StreamRouter(
        agents(up=up),
        [route("a", ["input", "b"], ["up"], "b"), route("b", "a", [], "output", until="False")],
        hop_limit=4,
    )

    with pytest.raises(StreamError, match="the limit of 4 hops is reached: a -> b -> a -> b -> a; "):
        run(router, 0)


@pytest.mark.campaign
def test_c100_many_rounds_until_a_condition_is_true():
    rounds = campaign(short=1_000, long=3_000)
    router = StreamRouter(
        agents(up=up), [route("r", ["input", "r"], ["up"], "output", until=f"message >= {rounds}")], hop_limit=rounds
    )

    assert run(router, 0).outputs == [rounds]


@pytest.mark.parametrize(
    ("routes", "reason"),
    [
        ([route("r", "input", [], "output", until="message")], "nothing leads from this route back to it"),
        ([route("r", ["input", "r"], [], until="message")], "no way leads from this route out of its loop"),
    ],
)
def test_a_route_that_could_not_obey_its_condition_is_refused(routes, reason):
    with pytest.raises(ConfigError, match=f"^route r: until: {reason}"):
        StreamRouter({}, routes)
