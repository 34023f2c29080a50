"""Answers that were cut off, and what they and broken ones used: told, and kept with what is stored."""

from typing import Any

import pytest
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

from cleveragents import (
    AnswerCutOff,
    LLMError,
    LLMUsed,
    SettingLeftOut,
    ToolAgent,
)
from cleveragents.agents.events import listening
from cleveragents.agents.llm.ending import CutOff, cut_off
from cleveragents.conversation.usage import Usage
from support.llms import ask, failure, told
from support.scripted_llm import calls, cuts, fails, hangs, says
from support.scripted_responses import responds

# --- cut off ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("finish", "given", "more", "reason"),
    [
        ("length", "length", {}, "length"),
        ("length", "MAX_TOKENS", {}, "length"),
        ("length", "model_context_window_exceeded", {}, "window"),
        ("content_filter", "SAFETY", {}, "content_filter"),
        ("content_filter", "refusal", {}, "refusal"),
        ("content_filter", None, {"refusal": "no"}, "refusal"),
        (None, "pause_turn", {}, "pause_turn"),
        ("error", "cancelled", {}, "cancelled"),
        ("stop", "end_turn", {}, None),
        ("tool_call", "tool_use", {}, None),
        ("stop", "completed", {}, None),
    ],
)
def test_c110_every_providers_word_for_a_cut_is_understood(finish, given, more, reason):
    details = more | ({"finish_reason": given} if given else {})
    found = cut_off(ModelResponse([TextPart("Half")], finish_reason=finish, provider_details=details), 10)
    assert (found and found.reason) == reason


def test_c110_an_answer_that_ends_far_below_its_limit_has_filled_the_window():
    response = ModelResponse([TextPart("x")], finish_reason="length", usage=RequestUsage(output_tokens=100))
    assert [found and found.reason for found in (cut_off(response, 512), cut_off(response, 100))] == [
        "window",
        "length",
    ]
    # Of few tokens it says nothing that a server counts one or two less.
    few = ModelResponse([TextPart("x")], finish_reason="length", usage=RequestUsage(output_tokens=3))
    assert cut_off(few, 5) == CutOff("length", "at the limit of 5 tokens; raise 'max_tokens'")


def test_c110_an_answer_without_a_word_at_the_end_of_the_window_is_not_advised_to_be_longer(scripted_llm, agent):
    counted = {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000}
    scripted_llm.script(says("", finish="length", usage=counted))
    why = failure(agent(max_tokens=512))
    assert why.startswith("it was cut off before it said anything: before its limit of 512 tokens, so the llm's window")
    assert "max_tokens" not in why


@pytest.mark.parametrize(
    ("why", "refusal", "reason"),
    [
        ("max_output_tokens", "", "length"),
        ("content_filter", "", "content_filter"),
        (None, "No more of that.", "refusal"),
        (None, "", ""),
    ],
)
def test_c110_an_answer_of_the_responses_api_that_was_cut_is_told(
    scripted_llm, agent, monkeypatch, why, refusal, reason
):
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_llm.url)
    scripted_llm.script(responds("Half an", why=why, refusal=refusal))
    reply, events = told(agent("openai-responses:gpt-5-mini", max_tokens=5, base_url=None))
    assert (reply.content, reply.cut_off) == ("Half an", reason)
    assert [event.reason for event in events if isinstance(event, AnswerCutOff)] == ([reason] if reason else [])


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_c110_an_answer_that_was_cut_is_told_and_given(scripted_llm, agent, finish):
    scripted_llm.script(says("Half an", finish=finish))
    reply, events = told(agent(max_tokens=5))
    assert (reply.content, reply.cut_off) == ("Half an", finish)
    assert [event.reason for event in events if isinstance(event, AnswerCutOff)] == [finish]


@pytest.mark.parametrize("given", ["", '{"message": "all fi'])
def test_c110_a_call_that_was_cut_off_is_not_run(scripted_llm, agent, given):
    scripted_llm.script(says("Now:", calls=[("rm", given)], finish="length"))
    why = failure(agent(tools=[ToolAgent("rm", "context['gone'] = True")], max_tokens=5))
    assert why == (
        "its answer was cut off in a call of a tool, which was not run: at the limit of 5 tokens; raise 'max_tokens'"
    )
    assert len(scripted_llm.requests) == 1


# --- what was used, or that nobody knows ------------------------------------------------------------------------


def used(agent):
    """What is told of usage while ``agent`` fails."""
    events: list[Any] = []
    with listening(events.append), pytest.raises(LLMError) as caught:
        ask(agent)
    return [event.usage for event in events if isinstance(event, LLMUsed)], caught.value.usage


@pytest.mark.parametrize(
    ("entries", "requests", "known"),
    [
        ([says("Half", then=cuts)], 1, False),
        ([hangs], 1, False),
        ([fails(400)], 0, True),
        ([calls("count", {"message": "abc"}), fails(401)], 1, True),
        ([calls("count", {"message": "abc"}), says("Half", then=cuts)], 2, False),
    ],
    ids=["broken off", "too late", "refused", "earlier round", "both"],
)
def test_c114_what_a_failed_answer_used_is_known_or_said_to_be_unknown(scripted_llm, agent, entries, requests, known):
    scripted_llm.script(*entries)
    events, whole = used(agent(tools=[ToolAgent("count", "result = len(message)")], timeout=2))
    assert sum(usage.requests for usage in events) == whole.requests == requests
    assert (whole.cost is not None) is known
    assert all(usage.cost is not None for usage in events) is known


def test_counts_of_tokens_that_no_request_has_are_not_believed(scripted_llm, agent, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_llm.url)
    responses = agent("openai-responses:gpt-5-mini", base_url=None)
    for counts in ((10**30, 5), (10, 10**30), (-5, 5)):
        scripted_llm.script(responds("Yes.", counts=counts))
        reply = ask(responses)
        assert (reply.content, reply.usage) == ("Yes.", Usage(requests=1, llm=responses.llm, cost=None))


# --- what was not sent -------------------------------------------------------------------------------------------


def test_a_temperature_that_an_llm_does_not_take_is_told(scripted_llm, agent, monkeypatch):
    scripted_llm.script(says("Yes."))
    _, events = told(agent(temperature=0.5))
    assert SettingLeftOut not in map(type, events)
    assert scripted_llm.requests[0]["temperature"] == 0.5
    # Of a provider's own server it is known which llms reason.
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_llm.url)
    scripted_llm.script(says("Yes."))
    _, events = told(agent("openai-chat:gpt-5-mini", temperature=0.5, base_url=None))
    assert SettingLeftOut("planner", "temperature") in events
    assert "temperature" not in scripted_llm.requests[1]
