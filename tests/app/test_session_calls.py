"""Calls of tools in a session: what an llm is told of them in their turn is what it is told in all later ones."""

import json

import pytest

from cleveragents import AppConfig, CleverAgentsApp
from support.scripted_llm import calls, says
from support.strict import SYSTEM, strictly

PRICE = {
    "type": "tool",
    "parameters": {"article": {"type": "string"}, "count": {"type": "integer", "default": 1}},
    "code": "result = {'tea': 3.5, 'air': ' '}[input['article']]",
}


@pytest.fixture
def clerk(scripted_llm, sessions):
    llm = {"type": "llm", "llm": "openai:any", "base_url": scripted_llm.url, "system_prompt": SYSTEM, "tools": "price"}
    return CleverAgentsApp(AppConfig.model_validate({"agents": {"clerk": llm, "price": PRICE}}), sessions=sessions)


def stored_calls(sessions, session_id):
    messages = sessions.messages(session_id)
    return [call for message in messages for call in message.tool_calls or ()]


def test_a_turn_begins_with_the_bytes_of_the_turn_before_whatever_was_called(clerk, sessions, session_id, scripted_llm):
    scripted_llm.script(
        says(
            " Let me\nsee.\n", calls=[("price", '{ "article" : "tea",\n "count": 2 }'), ("price", '{"article": "ink"}')]
        ),
        says("\n", calls=[("price", '{"article": '), ("price", "[1]"), ("price", ""), ("price", '{"article": 1e400}')]),
        says(calls=[("a price?", '{"n": 1.0}'), ("price", '{"article": "air", "x": "\\ud83d\\ude00é"}')]),
        strictly(says("It is 7.")),
        strictly(says("You are welcome.")),
    )
    clerk.run_sync("What is tea?\n", session_id=session_id)
    clerk.run_sync("Thanks.", session_id=session_id)
    *_, first, later = ([json.dumps(m) for m in request["messages"]] for request in scripted_llm.requests)
    assert len(first) == 13
    assert later[: len(first)] == first
    assert len(later) == len(first) + 2


def test_a_call_that_cannot_be_read_is_kept_and_told_again_as_it_came_as_json_that_providers_take(
    clerk, sessions, session_id, scripted_llm
):
    broken = '{"article": "tea", '
    scripted_llm.script(calls("price", broken), says("Sorry."), says("Yes."))
    clerk.run_sync("What is tea?", session_id=session_id)
    assert stored_calls(sessions, session_id) == [{"id": "call_price_0", "name": "price", "arguments": broken}]
    clerk.run_sync("Really?", session_id=session_id)
    for request in scripted_llm.requests[1:]:
        arguments = request["messages"][2]["tool_calls"][0]["function"]["arguments"]
        assert json.loads(arguments) == {"INVALID_JSON": broken}
        assert "cannot be read" in request["messages"][3]["content"]


def test_no_arguments_are_kept_as_none(clerk, sessions, session_id, scripted_llm):
    scripted_llm.script(says(calls=[("price", ""), ("price", "null"), ("price", "{}")]), says("Sorry."))
    clerk.run_sync("What is tea?", session_id=session_id)
    assert [call["arguments"] for call in stored_calls(sessions, session_id)] == [{}, {}, {}]


def test_a_name_that_no_provider_takes_is_not_sent_back_to_any(clerk, sessions, session_id, scripted_llm):
    scripted_llm.script(calls("price.of tea\n" + "x" * 80, {}), says("Sorry."), says("Yes."))
    clerk.run_sync("What is tea?", session_id=session_id)
    clerk.run_sync("Really?", session_id=session_id)
    name = f"price_of_tea_{'x' * 51}"
    for request in scripted_llm.requests[1:]:
        assert request["messages"][2]["tool_calls"][0]["function"]["name"] == name
