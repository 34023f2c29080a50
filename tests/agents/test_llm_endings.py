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
from cleveragents.agents.llm.ending import cut_off
from support.llms import ask, failure, told
from support.scripted_llm import calls, cuts, fails, hangs, says

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
