"""Which failures of an llm are met by asking again, and which are told as passing ones."""

import asyncio
import socket

import pytest

from cleveragents import Message, StreamRouter
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


def test_a_rate_limit_is_waited_out_as_often_as_the_server_says(scripted_llm, agent):
    scripted_llm.script(*[fails(429, "slow down", {"Retry-After-Ms": "50"})] * 6, says("Paris"))
    assert ask(agent()).content == "Paris"


def test_a_pause_that_is_longer_than_the_agent_allows_is_not_waited_for(scripted_llm, agent):
    scripted_llm.script(fails(429, "slow down", {"Retry-After": "2"}), says("never"))
    assert "try again in 2 seconds" in failure(agent(max_wait=1))


def test_a_server_that_always_says_at_once_is_not_asked_for_ever(scripted_llm, agent):
    scripted_llm.always(fails(429, "slow down", {"Retry-After": "0"}))
    assert "too many requests" in failure(agent(max_wait=1))
    assert len(scripted_llm.requests) <= 21


def test_all_who_ask_a_busy_server_side_by_side_are_answered(scripted_llm, agent):
    async def all_of_them():
        return await asyncio.gather(*(agent().process(Message("What?")) for _ in range(8)))

    scripted_llm.script(*[fails(429, "slow down", {"Retry-After-Ms": "50"})] * 30, *[says("Paris")] * 8)
    assert [reply.content for reply in asyncio.run(all_of_them())] == ["Paris"] * 8


def test_the_most_tokens_are_sent_by_the_newer_name_where_that_is_wanted_and_it_is_remembered(scripted_llm, agent):
    refusal = "Unsupported parameter: 'max_tokens' is not supported; use 'max_completion_tokens' instead."
    scripted_llm.script(fails(400, refusal), says("Paris"), says("Rome"))
    assert ask(agent("o-new", max_tokens=9)).content == "Paris"
    assert ask(agent("o-new", max_tokens=9)).content == "Rome"
    sent = [{key for key in request if key.startswith("max_")} for request in scripted_llm.requests]
    assert sent == [{"max_tokens"}, {"max_completion_tokens"}, {"max_completion_tokens"}]


@pytest.mark.parametrize(
    ("llm", "sent"), [("smollm2", "smollm2"), ("qwen3:8b", "qwen3:8b"), ("openai:gpt-5-mini", "gpt-5-mini")]
)
def test_a_server_at_an_address_of_its_own_is_asked_for_its_own_name(scripted_llm, agent, llm, sent):
    scripted_llm.script(says("Paris"))
    ask(agent(llm))
    assert scripted_llm.requests[0]["model"] == sent


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
