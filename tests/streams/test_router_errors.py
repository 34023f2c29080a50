"""What fails, fails for one message: the others flow, and the caller learns what happened."""

import asyncio
import sys

import pytest

from cleveragents import Message, Reply, StreamRouter, Usage
from cleveragents.agents.events import AgentEvent, TextDelta, listening, tell
from cleveragents.errors import AgentError, CleverAgentsError, InvalidValueError, StreamError, ToolError
from support.networks import agents, pass_through, route, run


def failing_on(*bad, error=None):
    def work(message):
        if message.content in bad:
            raise error or ValueError(f"cannot do {message.content}")
        return message.content

    return work


def same(message):
    return message.content


def raising(error):
    def fail(_):
        raise error

    return fail


def test_c97_one_failing_message_of_five_is_reported_and_a_sixth_in_a_new_run_arrives():
    router = StreamRouter(
        agents(a=same, b=failing_on(2)), [route("first", "input", ["a"]), route("second", "first", ["b"], "output")]
    )

    results = asyncio.run(pass_through(router, [1, 2, 3, 4, 5]))

    assert [result for result in results if isinstance(result, int)] == [1, 3, 4, 5]
    (error,) = [result for result in results if not isinstance(result, int)]
    assert str(error) == "agent b: ValueError: cannot do 2"
    assert (error.agent, error.route, error.message.content) == ("b", "second", 2)
    assert run(router, 6).outputs == [6]


def test_c98_a_branch_that_always_fails_costs_the_other_branches_nothing():
    parts = agents(bad=raising(RuntimeError("always")), b=same, c=same)
    routes = [
        route("one", "input", ["bad"], "output"),
        route("two", "input", ["b"], "output"),
        route("three", "input", ["c"], "output"),
    ]

    results = asyncio.run(pass_through(StreamRouter(parts, routes), [1, 2, 3]))

    assert sorted(result for result in results if isinstance(result, int)) == [1, 1, 2, 2, 3, 3]
    errors = [result for result in results if not isinstance(result, int)]
    assert sorted(error.message.content for error in errors) == [1, 2, 3], "once a message"


def test_errors_beside_outputs_are_in_the_result():
    routes = [route("one", "input", ["bad"], "output"), route("two", "input", ["good"], "output")]
    router = StreamRouter(agents(bad=raising(ToolError("bad", "no such file")), good=same), routes)

    result = run(router, "x")

    assert result.outputs == ["x"]
    assert [(str(error), error.agent, error.route) for error in result.errors] == [
        ("agent bad: no such file", "bad", "one")
    ]


def test_the_first_error_is_raised_when_nothing_else_came_out():
    router = StreamRouter(
        agents(bad=raising(ToolError("bad", "no such file"))), [route("r", "input", ["bad"], "output")]
    )

    with pytest.raises(ToolError, match=r"^agent bad: no such file$") as caught:
        run(router, "x")

    assert caught.value.route == "r"
    assert caught.value.message.content == "x"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError("name"), "agent a: KeyError: 'name'"),
        (ZeroDivisionError(), "agent a: ZeroDivisionError"),
        (ValueError("two\nlines\n"), "agent a: ValueError: two lines"),
        (InvalidValueError("cannot be stored", "x.y"), "agent a: x.y: cannot be stored"),
        (SystemExit("bye"), "agent a: SystemExit: bye"),
        (RecursionError("too deep"), "agent a: RecursionError: too deep"),
    ],
)
def test_an_agents_bug_becomes_one_line_that_names_the_agent(error, text):
    router = StreamRouter(agents(a=raising(error)), [route("r", "input", ["a"], "output")])

    with pytest.raises(AgentError) as caught:
        run(router, "x")

    assert str(caught.value) == text
    assert caught.value.__cause__ is error


def test_c92_an_agent_that_exits_is_a_failed_message_and_the_stream_goes_on():
    def leave(message):
        if message.content == 2:
            sys.exit("x")
        return message.content

    router = StreamRouter(agents(a=same, b=leave, c=same), [route("r", "input", ["a", "b", "c"], "output")])

    assert {str(result) for result in asyncio.run(pass_through(router, [1, 2, 3]))} == {
        "1",
        "agent b: SystemExit: x",
        "3",
    }


def test_an_agent_that_gives_no_reply_is_named():
    class Mistaken:
        name = "a"

        async def process(self, message):
            return message.content

    with pytest.raises(AgentError, match=r"^agent a: gave back a value of type str, not a Reply$"):
        run(StreamRouter({"a": Mistaken()}, [route("r", "input", ["a"], "output")]), "x")


def test_an_agent_whose_own_work_was_cancelled_fails_alone():
    async def cancelled(message):
        if message.content == 1:
            raise asyncio.CancelledError
        return message.content

    router = StreamRouter(agents(a=cancelled), [route("r", "input", ["a"], "output")])

    error, two = asyncio.run(pass_through(router, [1, 2]))

    assert str(error) == "agent a: was cancelled"
    assert two == 2


def test_usage_counts_even_when_the_reply_is_refused():
    refused = Reply("x", {"client": object()}, usage=Usage(5, 6, 0, 1, "big"))
    parts = agents(bad=lambda _: refused, good=same)
    routes = [route("one", "input", ["bad"], "output"), route("two", "input", ["good"], "output")]

    assert run(StreamRouter(parts, routes), "x").usage == Usage(5, 6, 0, 1, "big")


# --- whoever listens ------------------------------------------------------------------------------------


def test_agents_in_every_branch_are_heard():
    def telling(message):
        tell(TextDelta("a", message.content))
        return message.content

    routes = [route(name, "input", ["a"], "output") for name in ("one", "two")]
    router = StreamRouter(agents(a=telling), routes)
    heard: list[AgentEvent] = []

    with listening(heard.append):
        run(router, "x")

    assert [event for event in heard if isinstance(event, TextDelta)] == [TextDelta("a", "x")] * 2


def test_a_listener_that_raises_is_reported_once_and_breaks_nothing():
    def telling(message):
        for _ in range(3):
            tell(TextDelta("a", message.content))
        return message.content

    calls = []

    def listener(event):
        calls.append(event)
        raise OSError("the terminal is gone")

    router = StreamRouter(agents(a=telling), [route("r", "input", ["a"], "output")])
    with listening(listener):
        result = run(router, "x")

    assert result.outputs == ["x"]
    assert [event for event in calls if isinstance(event, TextDelta)] == [TextDelta("a", "x")] * 3
    assert [str(error) for error in result.errors] == ["a listener failed: OSError: the terminal is gone"]


def test_every_error_of_a_run_reads_alike():
    routes = [
        route("bad", "input", ["bad"], "output"),
        route("round", ["input", "round"], ["good"]),
        route("good", "input", ["good"], "output"),
    ]
    result = run(StreamRouter(agents(bad=raising(OSError("disk")), good=same), routes, hop_limit=3), "x")

    assert {type(error) for error in result.errors} == {AgentError, StreamError}
    for error in result.errors:
        assert isinstance(error, CleverAgentsError)
        assert error.route in {"bad", "round"}
        assert isinstance(error.message, Message)
        assert "\n" not in str(error)
        assert error.agent in {"bad", ""}
