"""Filter and map, whose conditions and expressions run in the real sandbox."""

import asyncio

import pytest

from cleveragents import Reply, StreamRouter
from cleveragents.errors import NoOutputError, StreamError
from support.networks import agents, pass_through, route, run, through

# --- filter ---------------------------------------------------------------------------------------------


def test_filter_passes_the_messages_of_which_its_condition_is_true_in_order():
    results = asyncio.run(pass_through(through({"filter": "message % 3 == 0"}), range(10)))

    assert results == [0, 3, 6, 9]


def test_filter_sees_context_and_metadata():
    router = through(
        "a",
        {"filter": "context['wanted'] == message and metadata['agent'] == 'a'"},
        a=lambda m: Reply(m.content, {"wanted": "x"}),
    )

    assert run(router, "x").outputs == ["x"]


@pytest.mark.parametrize(("condition", "kept"), [("[]", False), ("'no'", True), ("None", False), ("0.0", False)])
def test_what_counts_as_true_is_what_python_takes_for_it(condition, kept):
    assert asyncio.run(pass_through(through({"filter": condition}), ["x"])) == (["x"] if kept else [])


def test_c101_a_run_whose_only_route_filters_everything_out_ends():
    with pytest.raises(NoOutputError, match=r"^no output: filter in route r passed nothing on$"):
        run(through({"filter": "False"}), "x")


def test_a_condition_that_fails_costs_only_its_message():
    results = asyncio.run(pass_through(through({"filter": "10 // message > 1"}), [1, 0, 2]))

    assert [result for result in results if isinstance(result, int)] == [1, 2]
    (error,) = [result for result in results if not isinstance(result, int)]
    assert isinstance(error, StreamError)
    assert str(error).startswith("route r: filter '10 // message > 1': ZeroDivisionError")
    assert (error.route, error.agent, error.message.content) == ("r", "", 0)
    assert "\n" not in str(error)


def count(message):
    return Reply(message.content, {"n": message.context["n"] + 1})


def test_an_expression_sees_the_context_as_it_was_when_its_message_was_handed_on():
    # The agent is done with all messages long before the first expression is evaluated.
    router = through("count", {"map": "[message, context['n']]"}, {"map": "[*message, context['n']]"}, count=count)

    assert asyncio.run(pass_through(router, range(10), {"n": 0})) == [[n, n + 1, n + 1] for n in range(10)]


def test_at_the_input_an_expression_sees_the_context_of_the_run():
    assert asyncio.run(pass_through(through({"map": "context['n']"}), ["x"], {"n": 5})) == [5]


def test_filters_that_exclude_each_other_let_each_message_through_once():
    routes = [
        route("draft", ["input", "again"], ["count"]),
        # It comes to a message after the loop has gone on with it.
        route("done", "draft", [{"map": "message"}, {"map": "message"}, {"filter": "context['n'] >= 3"}], "output"),
        route("again", "draft", [{"filter": "context['n'] < 3"}]),
    ]

    assert run(StreamRouter(agents(count=count), routes), "x", {"n": 0}).outputs == ["x"]


def test_an_expression_cannot_change_the_context():
    router = through({"map": "context['list'].append(1) or context['list']"})

    result = run(router, "x", {"list": []})

    assert result.output == [1]
    assert result.context == {"list": []}


# --- map ------------------------------------------------------------------------------------------------


def test_map_puts_the_value_of_its_expression_in_the_place_of_the_content():
    assert run(through({"map": "{'words': message.split(), 'who': context['who']}"}), "a b", {"who": "me"}).outputs == [
        {"words": ["a", "b"], "who": "me"}
    ]


def test_map_keeps_metadata():
    seen = []

    def look(message):
        seen.append(dict(message.metadata))
        return message.content

    run(through({"map": "message + '!'"}, "look", look=look), "x", metadata={"line": 3})

    assert seen == [{"line": 3}]


def test_where_map_gives_none_nothing_goes_on():
    results = asyncio.run(pass_through(through({"map": "message if message > 1 else None"}), [1, 2, 3]))

    assert results == [2, 3]


def test_a_value_that_is_not_json_is_refused_with_route_and_operator():
    with pytest.raises(StreamError, match=r"^route r: map '\{1, 2\}': value: a value of type set cannot be stored"):
        run(through({"map": "{1, 2}"}), "x")
