"""Which failures of an llm are met by asking again, and which are told as passing ones."""

import socket

import pytest

from cleveragents import StreamRouter
from cleveragents.errors import LLMError
from support.llms import ask, failure
from support.networks import route, run
from support.scripted_llm import cuts, fails, hangs, says, sends


@pytest.mark.parametrize(
    "passing",
    [fails(500, "boom"), fails(503, "overloaded"), fails(429, "slow down", {"Retry-After": "1"}), cuts],
    ids=["500", "503", "429", "cut"],
)
def test_c103_a_passing_failure_is_met_by_asking_again_with_the_question_once(scripted_llm, agent, passing):
    scripted_llm.script(passing, passing, says("Paris"))
    assert ask(agent(system_prompt="Be brief.")).content == "Paris"
    roles = [[message["role"] for message in request["messages"]] for request in scripted_llm.requests]
    assert roles == [["system", "user"]] * 3


def test_a_failure_that_does_not_pass_ends_after_three_tries(scripted_llm, agent):
    scripted_llm.script(*[fails(500, "boom")] * 3, says("never"))
    text = failure(agent())
    assert "failed (500)" in text
    assert "try again" in text
    assert "boom" in text
    assert len(scripted_llm.requests) == 3


def test_a_server_that_asks_for_a_long_pause_is_not_waited_for(scripted_llm, agent):
    scripted_llm.script(fails(429, "slow down", {"Retry-After": "108000"}), says("never"))
    text = failure(agent())
    assert "too many requests (429)" in text
    assert "try again in 30 hours" in text
    assert len(scripted_llm.requests) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_is_not_asked_for_again(scripted_llm, agent, status):
    scripted_llm.script(fails(status), says("never"))
    failure(agent())
    assert len(scripted_llm.requests) == 1


@pytest.mark.parametrize(
    ("entry", "may_pass"),
    [
        (fails(500, "boom"), True),
        (fails(503, "overloaded"), True),
        (fails(429, "slow down", {"Retry-After": "300"}), True),
        (cuts, True),
        (says("half an", then=cuts), True),
        (says("half an", finish="", then=lambda exchange: exchange.write(b"0\r\n\r\n")), True),
        (hangs, True),
        (fails(400), False),
        (fails(401), False),
        (fails(404), False),
        (fails(429, {"message": "no credit", "type": "insufficient_quota", "code": "insufficient_quota"}), False),
        (sends(b"<html>"), False),
    ],
    ids=["500", "503", "429", "cut", "cut within", "broken off", "late", "400", "401", "404", "quota", "nonsense"],
)
def test_only_a_failure_that_may_pass_is_marked_as_temporary(scripted_llm, agent, entry, may_pass):
    scripted_llm.script(*[entry] * 3)

    with pytest.raises(LLMError) as caught:
        # On a busy machine any answer is late by so short a time, so only what never comes is given it.
        ask(agent(timeout=0.2 if entry is hangs else 60))

    assert caught.value.temporary is may_pass


def test_a_server_that_cannot_be_reached_may_be_there_later(agent):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(LLMError) as caught:
            ask(agent(base_url=address))
    assert caught.value.temporary


def test_a_server_without_tls_will_have_none_later(scripted_llm, agent):
    with pytest.raises(LLMError) as caught:
        ask(agent(base_url=scripted_llm.url.replace("http:", "https:")))
    assert not caught.value.temporary


def test_the_operator_retry_asks_an_llm_again_after_its_own_tries(scripted_llm, agent):
    scripted_llm.script(*[fails(500, "boom")] * 3, says("Paris"))
    steps = ["planner", {"retry": {"attempts": 2, "backoff": 0.01}}]
    router = StreamRouter({"planner": agent()}, [route("r", "input", steps, "output")])

    assert run(router, "What?").outputs == ["Paris"]
    assert len(scripted_llm.requests) == 4


def test_the_operator_retry_does_not_repeat_a_refusal(scripted_llm, agent):
    scripted_llm.script(fails(401), says("never"))
    steps = ["planner", {"retry": {"attempts": 3, "backoff": 0.01}}]
    router = StreamRouter({"planner": agent()}, [route("r", "input", steps, "output")])

    with pytest.raises(LLMError, match="refused the key"):
        run(router, "What?")

    assert len(scripted_llm.requests) == 1
