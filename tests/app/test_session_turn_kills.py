"""Runs on sessions killed at any moment: no message is lost, and the strictest server accepts the next request."""

import json

import pytest

from cleveragents import AppConfig, CleverAgentsApp, open_sessions
from support.campaign import campaign
from support.killer import run_killer
from support.scripted_llm import says
from support.strict import SYSTEM, faults

# Kills runs that go on for ever. Prints what it found wrong, and how many turns were cut.
KILLER = """
import json, sys
import cleveragents.agents.llm.client, cleveragents.agents.llm.pydantic_messages, cleveragents.agents.llm.prices
import cleveragents.agents.llm.token_limit
import cleveragents.agents.tool.sandbox, pydantic_monty, cleveragents.turns.session, genai_prices
from cleveragents import AppConfig, CleverAgentsApp, open_sessions
from support.killer import lives

url, session_id, kills = sys.argv[1], sys.argv[2], int(sys.argv[3])
config = AppConfig.model_validate(json.loads(sys.argv[4]))
wrong, cut = [], 0

def run_for_ever(life, acknowledge):
    sessions, number = open_sessions(url), 0
    app = CleverAgentsApp(config, sessions=sessions)
    while True:
        app.run_sync(f"{life}/{number}", session_id=session_id)
        acknowledge(b"t")
        number += 1

for life, acknowledged in lives(kills, run_for_ever, after=(1, 2), rounds=1_500_000):
    with open_sessions(url) as sessions:
        turns = []
        for message in sessions.last_messages(session_id, 200):
            if message.role == "user":
                turns.append([message.content])
            elif turns:
                turns[-1].append((message.role.value, len(message.tool_calls or ())))
    mine = [turn for turn in turns if turn[0].startswith(f"{life}/")]
    whole = [("assistant", 2), ("tool", 0), ("tool", 0), ("assistant", 0)]
    finished = [turn for turn in mine if turn[1:] == whole]
    if not len(acknowledged) <= len(finished) <= len(mine) <= len(acknowledged) + 1:
        wrong.append(f"life {life}: {len(acknowledged)} acknowledged, {mine}")
    if any(turn[1:] not in ([], whole[:3], whole) for turn in mine):
        wrong.append(f"life {life}: {mine}")
    cut += len(mine) > len(finished)
print(json.dumps({"wrong": wrong, "cut": cut}))
"""


@pytest.fixture
def strict(scripted_llm):
    """A server that has two tools called for each question, and what it found wrong with its requests."""
    found = []

    def answer(exchange):
        messages = exchange.request["messages"]
        found.extend(faults(messages))
        two = says("Let me see.", calls=[("count", {"message": "ab"}), ("count", {"message": "abc"})])
        (says("Five.") if messages[-1]["role"] == "tool" else two)(exchange)

    scripted_llm.always(answer)
    return found


@pytest.mark.campaign
def test_c50_killed_again_and_again_in_the_middle_of_turns_with_calls(tmp_path, scripted_llm, strict):
    llm = {
        "type": "llm",
        "llm": "openai:any",
        "base_url": scripted_llm.url,
        "system_prompt": SYSTEM,
        "tools": ["count"],
    }
    config = {
        "agents": {"assistant": llm, "count": {"type": "tool", "code": "result = len(message)"}},
        "history": {"window": {"turns": 10}},
    }
    url = f"sqlite:///{tmp_path / 'sessions.db'}"
    with open_sessions(url) as sessions:
        session_id = sessions.create().session_id
    kills = campaign(short=12, long=100)
    found = run_killer(KILLER, url, session_id, kills, json.dumps(config), home=tmp_path)
    assert found["wrong"] == []
    # The kills hit turns, not only what is between them.
    assert found["cut"] > kills / 10
    assert strict == []
    with open_sessions(url) as sessions:
        result = CleverAgentsApp(AppConfig.model_validate(config), sessions=sessions).run_sync(
            "go on", session_id=session_id
        )
    assert result.output == "Let me see.\n\nFive."
    assert strict == []
