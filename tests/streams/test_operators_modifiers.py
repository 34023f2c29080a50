"""Retry and timeout, which change how the step before them works."""

import asyncio

import pytest

from cleveragents import Reply, StreamRouter
from cleveragents.errors import AgentError, LLMError, ToolError
from support.networks import pass_through, route, run, through


class Flaky:
    """Fails until it has been asked ``failures`` times."""

    name = "flaky"

    def __init__(self, failures, error):
        self.failures = failures
        self.error = error
        self.asked = 0

    async def process(self, message):
        self.asked += 1
        if self.asked <= self.failures:
            raise self.error
        return Reply(message.content, {"asked": self.asked})


def busy():
    return LLMError("flaky", "429: too busy", temporary=True)


@pytest.mark.parametrize("error", [busy(), ConnectionRefusedError("no"), TimeoutError("late")], ids=repr)
def test_retry_asks_again_when_that_may_help(error):
    flaky = Flaky(2, error)
    router = StreamRouter(
        {"flaky": flaky}, [route("r", "input", ["flaky", {"retry": {"attempts": 3, "backoff": 0.001}}], "output")]
    )

    result = run(router, "x")

    assert (result.outputs, result.errors, result.context) == (["x"], [], {"asked": 3})


@pytest.mark.parametrize(
    "error", [LLMError("flaky", "401: wrong key"), ToolError("flaky", "1/0"), KeyError("x")], ids=repr
)
def test_retry_does_not_ask_again_when_that_cannot_help(error):
    flaky = Flaky(1, error)
    router = StreamRouter({"flaky": flaky}, [route("r", "input", ["flaky", {"retry": {"attempts": 3}}], "output")])

    with pytest.raises(AgentError):
        run(router, "x")

    assert flaky.asked == 1


def test_when_all_attempts_have_failed_the_last_error_is_reported_once():
    flaky = Flaky(9, busy())
    steps = ["flaky", {"retry": {"attempts": 3, "backoff": 0.001}}]
    router = StreamRouter({"flaky": flaky}, [route("r", "input", steps, "output")])

    results = asyncio.run(pass_through(router, ["x"]))

    assert [str(error) for error in results] == ["agent flaky: 429: too busy"]
    assert flaky.asked == 3


def test_timeout_cancels_an_agent_that_is_late_and_the_next_message_goes_on():
    async def scenario():
        ended = []

        async def slow(message):
            if message.content != "slow":
                return message.content
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(message.content)

        results = await pass_through(through("slow", {"timeout": 0.01}, slow=slow), ["slow", "quick"])
        return [str(result) for result in results], ended

    assert asyncio.run(scenario()) == (["agent slow: gave nothing within 0.01 s", "quick"], ["slow"])
