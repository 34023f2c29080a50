"""Prompts and results that are larger than what an llm holds: shortened for the llm, and kept whole."""

import json

import pytest

from cleveragents import AppConfig, CleverAgentsApp, MessageDraft, PromptShortened
from cleveragents.agents.events import AgentEvent
from cleveragents.agents.llm.token_limit import token_limit
from cleveragents.conversation.transcript import estimated_tokens
from support.scripted_llm import calls, says
from support.strict import SYSTEM, strictly

LLM = "openai:gpt-4o"
FETCH = {"type": "tool", "parameters": {"n": {"type": "integer"}}, "code": "result = 'word ' * input['n']"}


@pytest.fixture
def app(scripted_llm, sessions):
    llm = {"type": "llm", "llm": LLM, "base_url": scripted_llm.url, "system_prompt": SYSTEM, "tools": "fetch"}
    return CleverAgentsApp(AppConfig.model_validate({"agents": {"reader": llm, "fetch": FETCH}}), sessions=sessions)


def size(request):
    """About how many tokens a request has."""
    return estimated_tokens(json.dumps(request["messages"]))


def test_the_llm_is_known_to_hold_less_than_is_sent_here():
    assert token_limit(LLM) == 128_000


def test_a_result_larger_than_the_window_is_shortened_for_the_llm_and_kept_whole(
    app, sessions, session_id, scripted_llm
):
    scripted_llm.script(*map(strictly, (calls("fetch", {"n": 600_000}), says("Words."), says("Yes."))))
    app.run_sync("Fetch it.", session_id=session_id)
    app.run_sync("Sure?", session_id=session_id)
    _, first, later = (request["messages"] for request in scripted_llm.requests)
    assert "characters are left out here" in first[3]["content"]
    assert 30_000 < size(scripted_llm.requests[1]) < 128_000
    assert later[:4] == first
    assert sessions.messages(session_id)[2].content == "word " * 600_000


def test_a_prompt_larger_than_the_window_is_shortened_for_the_llm_and_kept_whole(
    app, sessions, session_id, scripted_llm
):
    prompt = f"Sum it up.\n\n{'word ' * 300_000}end"
    scripted_llm.script(*map(strictly, (says("Words."), says("Yes."))))
    events: list[AgentEvent] = []
    app.run_sync(prompt, session_id=session_id, listener=events.append)
    assert PromptShortened("reader", len(prompt)) in events
    app.run_sync("Sure?", session_id=session_id)
    first, later = (request["messages"] for request in scripted_llm.requests)
    assert first[1]["content"].startswith("Sum it up.\n\nword ")
    assert first[1]["content"].endswith("word end")
    assert "characters are left out here" in first[1]["content"]
    assert later[:2] == first
    assert sessions.messages(session_id)[0].content == prompt


def test_history_is_not_given_up_for_results_on_a_mere_guess_of_what_an_llm_holds(sessions, session_id, scripted_llm):
    llm = {"type": "llm", "llm": "openai:any", "base_url": scripted_llm.url, "system_prompt": SYSTEM, "tools": "fetch"}
    app = CleverAgentsApp(AppConfig.model_validate({"agents": {"a": llm, "fetch": FETCH}}), sessions=sessions)
    sessions.append_all(session_id, [MessageDraft("user", "q0"), MessageDraft("assistant", "a0")])
    scripted_llm.script(calls("fetch", {"n": 20_000}), says("Words."))
    app.run_sync("Fetch it.", session_id=session_id)
    assert [m["content"] for m in scripted_llm.requests[1]["messages"][1:4]] == ["q0", "a0", "Fetch it."]
    assert len(scripted_llm.requests[1]["messages"][-1]["content"]) == 100_000


def test_a_turn_of_many_large_results_never_goes_beyond_the_window_and_history_makes_room(
    app, sessions, session_id, scripted_llm
):
    for number in range(20):
        sessions.append_all(session_id, [MessageDraft("user", f"q{number}"), MessageDraft("assistant", "a " * 12_000)])
    rounds = [calls("fetch", {"n": 100_000})] * 8
    scripted_llm.script(*map(strictly, (*rounds, says("Done."), says("Yes."))))
    app.run_sync("Fetch them all.", session_id=session_id)
    assert max(map(size, scripted_llm.requests)) < 128_000
    app.run_sync("Sure?", session_id=session_id)
    questions = [m["content"] for m in scripted_llm.requests[-1]["messages"] if m["role"] == "user"]
    assert questions[-2:] == ["Fetch them all.", "Sure?"]


def test_a_large_turn_in_the_history_costs_none_of_those_before_it(app, sessions, session_id, scripted_llm):
    ids = [f"c{number}" for number in range(60)]
    made = [{"id": call_id, "name": "fetch", "arguments": {}} for call_id in ids]
    results = [MessageDraft("tool", "word " * 5000, tool_call_id=call_id) for call_id in ids]
    large = [MessageDraft("user", "q1"), MessageDraft("assistant", None, tool_calls=made), *results]
    before = [MessageDraft("user", "q0"), MessageDraft("assistant", "a0")]
    sessions.append_all(session_id, [*before, *large, MessageDraft("assistant", "a1")])
    scripted_llm.script(strictly(says("Yes.")))
    app.run_sync("go on", session_id=session_id)
    questions = [m["content"] for m in scripted_llm.requests[0]["messages"] if m["role"] == "user"]
    assert questions == ["q0", "q1", "go on"]
