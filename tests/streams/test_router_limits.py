"""A run is bounded as a whole: routes that split in a loop, and what steps put out together."""

import asyncio

import pytest

from cleveragents import CleverAgentsApp, ContextManager, StreamRouter, load_config
from cleveragents.config import LimitsConfig
from cleveragents.errors import AgentError, StreamError
from support.networks import agents, pass_through, route, run


def same(message):
    return message.content


def fails(_message):
    raise OSError("disk")


def limited(routes, parts=None, **limits):
    return StreamRouter(parts or {}, routes, hop_limit=10**6, limits=LimitsConfig(**limits))


def test_two_routes_that_feed_each_other_end_and_what_came_before_is_there():
    routes = [route("a", ["input", "a", "b"], to="output"), route("b", ["a", "b"])]

    result = run(limited(routes, messages=1_000), "x")

    (error,) = result.errors
    assert str(error) == (
        "route a: the run has put out more than 1,000 messages, and ends here; "
        "end its loops sooner, or raise limits: {messages: …} in the file"
    )
    assert set(result.outputs) == {"x"}
    assert 100 < len(result.outputs) < 1_000


def test_sixty_routes_back_into_a_loop_end():
    back = [route(f"r{number}", "a", to="a") for number in range(60)]

    with pytest.raises(StreamError, match="more than 5,000 messages"):
        run(limited([route("a", "input", ["same"]), *back], agents(same=same), messages=5_000), "x")


def test_errors_count_as_messages():
    router = limited([route("a", "input", ["fails"], "output")], agents(fails=fails), messages=1)
    routes = [route(f"r{number}", "input", ["fails"], "output") for number in range(20)]

    assert [type(result) for result in asyncio.run(pass_through(router, "abc"))] == [AgentError] * 3
    results = asyncio.run(pass_through(limited(routes, agents(fails=fails), messages=5), "x"))

    assert [str(result) for result in results[:-1]] == ["agent fails: OSError: disk"] * 5
    assert "more than 5 messages" in str(results[-1])


def test_bytes_are_those_of_what_steps_put_out():
    def longer(message):
        return message.content * 2

    routes = [route("a", ["input", "a"], ["longer"], "output")]

    result = run(limited(routes, agents(longer=longer), bytes=1_000), "x")

    assert "more than 1,000 bytes" in str(result.errors[0])
    assert [len(output) for output in result.outputs] == [2, 4, 8, 16, 32, 64, 128, 256]


def test_what_a_split_hands_on_is_counted_in_bytes_once():
    routes = [route("a", "input", ["same"]), *(route(f"r{number}", "a", to="output") for number in range(200))]

    result = run(limited(routes, agents(same=lambda message: message.content + "!"), bytes=11_000), "x" * 10_000)

    assert (len(result.outputs), result.errors) == (200, [])
    assert len({id(output) for output in result.outputs}) == 1


def test_an_output_that_comes_on_200_ways_is_kept_once(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEVERAGENTS_HOME", str(tmp_path / "home"))
    file = tmp_path / "wide.yaml"
    ways = "".join(f"  r{number}: {{from: a, to: output}}\n" for number in range(200))
    file.write_text(
        "agents:\n  big: {type: tool, code: \"result = 'x' * 1000000\"}\n"
        f"routes:\n  a: {{from: input, through: [big]}}\n{ways}"
    )

    context = ContextManager("wide")
    result = CleverAgentsApp(load_config(file)).run_sync("go", context=context)

    assert len(result.outputs) == 200
    assert [(message.role, len(message.content)) for message in context.messages] == [("user", 2), ("assistant", 10**6)]


def test_a_file_says_its_limits(tmp_path):
    file = tmp_path / "loop.yaml"
    file.write_text(
        "agents:\n  a: {type: tool, code: result = message}\n"
        "routes:\n  a: {from: [input, b, a], to: output}\n  b: {from: [a, b]}\n"
        "limits: {messages: 50}\n"
    )

    result = CleverAgentsApp(load_config(file)).run_sync("go")

    assert "more than 50 messages" in str(result.errors[0])
    assert 1 <= len(result.outputs) <= 50


def test_each_message_at_the_input_brings_its_own_limit():
    router = limited([route("a", "input", ["same"], "output")], agents(same=same), messages=1)

    assert asyncio.run(pass_through(router, range(100))) == list(range(100))
