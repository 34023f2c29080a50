"""``on_error``: a failure is reported, left out, or made good by another agent."""

import asyncio

import pytest

from cleveragents import Reply, StreamRouter
from cleveragents.agents.events import ErrorPassedOver, listening
from cleveragents.errors import AgentError, ConfigError, NoOutputError
from support.networks import agents, pass_through, route, run


def picky(message):
    if message.content % 2:
        raise ValueError(f"{message.content} is odd")
    return message.content


def half(message):
    return message.content / 2


def broken(_):
    raise OSError("no such thing")


def router(*through, on_error, agents_say=None, **more):
    parts = agents(picky=picky, half=half, broken=broken, **more)
    return StreamRouter(parts, [route("r", "input", through, "output", on_error=on_error)], on_error=agents_say)


def given(a_router, contents):
    return [str(result) for result in asyncio.run(pass_through(a_router, contents))]


def test_fail_reports_the_message_and_the_others_flow():
    assert given(router("picky", on_error="fail"), [1, 2]) == ["agent picky: ValueError: 1 is odd", "2"]


def test_skip_leaves_the_message_out_without_an_error():
    assert given(router("picky", on_error="skip"), [1, 2, 3, 4]) == ["2", "4"]


def test_another_agent_replies_in_the_place_of_the_one_that_failed():
    assert given(router("picky", on_error="half"), [1, 2, 3]) == ["0.5", "2", "1.5"]


def test_what_stands_in_gets_the_message_that_the_failed_step_got_and_its_reply_goes_on():
    again = router("picky", "shown", on_error="half", shown=lambda message: f"{message.metadata['agent']}!")

    assert given(again, [1, 2]) == ["half!", "picky!"]


def test_when_the_one_that_stands_in_fails_too_its_error_is_reported():
    with pytest.raises(AgentError, match=r"^agent broken: OSError: no such thing$") as caught:
        run(router("picky", on_error="broken"), 1)

    assert (caught.value.route, caught.value.message.content) == ("r", 1)


def test_a_run_in_which_everything_was_left_out_says_so():
    with pytest.raises(NoOutputError) as caught:
        run(router("picky", on_error="skip"), 1)

    assert str(caught.value) == (
        "no output: on_error in route r left out what failed: agent picky: ValueError: 1 is odd"
    )


def test_it_is_for_every_step_of_the_route():
    steps = [{"map": "message + 0 / (message - 3)"}, {"filter": "message['x'] if message == 5 else True"}, "picky"]

    assert given(router(*steps, on_error="skip"), [2, 3, 4, 5, 7]) == ["2.0", "4.0"]


def test_an_agent_may_say_otherwise_than_its_route():
    assert given(router("picky", on_error="skip", agents_say={"picky": "fail"}), [1, 2]) == [
        "agent picky: ValueError: 1 is odd",
        "2",
    ]
    assert given(router("picky", on_error="fail", agents_say={"picky": "half"}), [1, 2]) == ["0.5", "2"]


def test_it_takes_effect_after_all_attempts():
    asked = []

    def busy(message):
        asked.append(message.content)
        raise ConnectionError("too busy")

    steps = ["busy", {"retry": {"attempts": 3, "backoff": 0.001}}]

    assert given(router(*steps, on_error="half", busy=busy), [4]) == ["2.0"]
    assert asked == [4, 4, 4]


def test_it_takes_effect_when_the_time_is_up():
    async def slow(_):
        await asyncio.Event().wait()

    assert given(router("slow", {"timeout": 0.01}, on_error="half", slow=slow), [4]) == ["2.0"]


def test_in_parallel_an_agent_that_fails_is_left_out_or_replaced_by_itself():
    step = {"parallel": {"agents": ["picky", "half"]}}

    assert run(router(step, on_error="fail", agents_say={"picky": "skip"}), 3).outputs == [{"half": 1.5}]
    assert run(router(step, on_error="fail", agents_say={"picky": "half"}), 3).outputs == [{"picky": 1.5, "half": 1.5}]
    with pytest.raises(AgentError, match=r"^agent picky: "):
        run(router(step, on_error="fail"), 3)


def test_what_switch_chose_may_be_replaced():
    step = {"switch": [{"agent": "picky"}]}

    assert run(router(step, on_error="fail", agents_say={"picky": "half"}), 3).outputs == [1.5]
    assert run(router(step, on_error="half"), 3).outputs == [1.5]


def test_an_agent_that_failed_has_changed_nothing_the_one_that_stands_in_has():
    def spoil(message):
        message.context["seen"] = True
        raise ValueError("no")

    parts = agents(spoil=spoil, good=lambda message: Reply(message.content, {"by": "good"}))
    again = StreamRouter(parts, [route("r", "input", ["spoil"], "output", on_error="good")])

    assert run(again, "x", {"seen": False}).context == {"seen": False, "by": "good"}


def test_whoever_listens_hears_what_was_passed_over():
    heard: list = []
    with listening(heard.append):
        given(router("picky", on_error="skip"), [1])
        given(router("picky", on_error="half"), [3])

    assert [event for event in heard if isinstance(event, ErrorPassedOver)] == [
        ErrorPassedOver("r", "agent picky: ValueError: 1 is odd"),
        ErrorPassedOver("r", "agent picky: ValueError: 3 is odd", "half"),
    ]


def test_what_stands_in_must_be_there():
    with pytest.raises(ConfigError, match=r"^route r: on_error names nobody, which is not an agent$"):
        router("picky", on_error="nobody")
    with pytest.raises(ConfigError, match=r"^agent picky: on_error names nobody, which is not an agent$"):
        router("picky", on_error="fail", agents_say={"picky": "nobody"})
