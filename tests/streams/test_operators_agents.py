"""Parallel and switch, which ask agents."""

import asyncio
import contextlib

import pytest

from cleveragents import Message, Reply, Usage
from cleveragents.errors import AgentError
from support.networks import run, through


def test_parallel_asks_ten_agents_at_the_same_time():
    async def scenario():
        together = asyncio.Barrier(10)
        in_flight = most = 0

        async def meet(message):
            nonlocal in_flight, most
            in_flight += 1
            most = max(most, in_flight)
            await together.wait()
            in_flight -= 1
            return Reply(message.content, {"met": {str(together.parties): True}})

        names = [f"critic{number}" for number in range(10)]
        router = through({"parallel": {"agents": names}}, **dict.fromkeys(names, meet))
        return names, await asyncio.wait_for(router.run(Message("draft")), 30), most

    names, result, most = asyncio.run(scenario())
    assert most == 10
    assert result.output == dict.fromkeys(names, "draft")
    assert list(result.output) == names
    assert result.context == {"met": {"10": True}}


def test_no_change_of_an_agent_in_parallel_is_lost():
    parts = {name: (lambda m, name=name: Reply(name, {"by": {name: 1}}, removed=[name])) for name in "abc"}

    result = run(through({"parallel": {"agents": list("abc")}}, **parts), "x", {"a": 1, "b": 2, "c": 3, "kept": 4})

    assert result.context == {"kept": 4, "by": {"a": 1, "b": 1, "c": 1}}


def test_who_is_not_first_is_cancelled_and_changes_nothing():
    async def scenario():
        ended = []

        async def slow(_):
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("slow")
            return Reply("slow", {"slow": True})

        seen = []

        def look(message):
            seen.append(message.metadata["agent"])
            return message.content

        router = through(
            {"parallel": {"agents": ["slow", "quick"], "join": "first"}},
            "look",
            slow=slow,
            quick=lambda _: Reply("quick", {"quick": True}),
            look=look,
        )
        result = await router.run(Message("x"))
        return result.outputs, result.context, ended, seen

    assert asyncio.run(scenario()) == (["quick"], {"quick": True}, ["slow"], ["quick"])


def test_an_agent_that_will_not_be_cancelled_changes_nothing_either():
    async def stubborn(_):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return Reply("late", {"late": True}, usage=Usage(5, 1, 0, 1, "big"))

    step = {"parallel": {"agents": ["stubborn", "quick"], "join": "first"}}

    result = run(through(step, stubborn=stubborn, quick=lambda _: "quick"), "x")

    assert (result.outputs, result.context) == (["quick"], {})


def test_a_majority_of_agents_decides():
    parts = {"a": lambda _: "yes", "b": lambda _: "no", "c": lambda _: "yes"}

    assert run(through({"parallel": {"agents": list("abc"), "join": "majority"}}, **parts), "?").outputs == ["yes"]


def test_an_agent_in_parallel_that_fails_is_named():
    def fail(_):
        raise ValueError("no")

    with pytest.raises(AgentError, match=r"^agent bad: ValueError: no$") as caught:
        run(through({"parallel": {"agents": ["good", "bad"]}}, good=lambda m: m.content, bad=fail), "x")

    assert caught.value.route == "r"


def test_switch_asks_the_agent_of_the_first_case_that_is_true():
    step = {
        "switch": [
            {"when": "len(message) > 5", "agent": "shorten"},
            {"when": "context['loud']", "agent": "shout"},
            {"agent": "same"},
        ]
    }
    parts = {
        "shorten": lambda m: m.content[:5],
        "shout": lambda m: m.content.upper(),
        "same": lambda m: m.content + ".",
    }

    assert run(through(step, **parts), "long text", {"loud": True}).outputs == ["long "]
    assert run(through(step, **parts), "text", {"loud": True}).outputs == ["TEXT"]
    assert run(through(step, **parts), "text", {"loud": False}).outputs == ["text."]


def test_a_message_for_which_no_case_is_true_goes_on_as_it_is():
    step = {"switch": [{"when": "False", "agent": "shout"}]}

    assert run(through(step, shout=lambda m: m.content.upper()), "text").outputs == ["text"]
