"""Runs on sessions killed at any moment: no message is lost, and the strictest server accepts the next request."""

import json
import subprocess
import sys

import pytest

from cleveragents import AppConfig, CleverAgentsApp, open_sessions
from support.command import environment
from support.scripted_llm import says
from support.strict import SYSTEM, faults

# Forks runs that go on for ever, and kills each after a random number of acknowledged turns and rounds of nothing. The
# parent never uses the sandbox, nor holds a database open: a fork could not share them. Prints what it found wrong.
KILLER = """
import json, os, random, signal, sys
import cleveragents.agents.llm.client, cleveragents.agents.llm.pydantic_messages, cleveragents.agents.llm.known
import cleveragents.agents.tool.sandbox, pydantic_monty, cleveragents.turns.session, genai_prices
from cleveragents import AppConfig, CleverAgentsApp, open_sessions

url, session_id, kills = sys.argv[1], sys.argv[2], int(sys.argv[3])
config = AppConfig.model_validate(json.loads(sys.argv[4]))
chance, wrong, cut = random.Random("seed"), [], 0

def run_for_ever(life, pipe):
    sessions, number = open_sessions(url), 0
    app = CleverAgentsApp(config, sessions=sessions)
    while True:
        app.run_sync(f"{life}/{number}", session_id=session_id)
        os.write(pipe, b"t")
        number += 1

for life in range(kills):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            run_for_ever(life, writing)
        except BaseException as error:
            os.write(2, f"{life}: {error!r}".encode())
            os._exit(1)
    os.close(writing)
    acknowledged = b"".join(os.read(reading, 1) for _ in range(chance.randrange(1, 3)))
    for _ in range(chance.randrange(1_500_000)):
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(reading, 100):
        acknowledged += more
    os.close(reading)
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


def test_c50_killed_100_times_in_the_middle_of_turns_with_calls(tmp_path, scripted_llm, strict):
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
    done = subprocess.run(
        [sys.executable, "-c", KILLER, url, session_id, "100", json.dumps(config)],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
        timeout=400,
    )
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    # The kills hit turns, not only what is between them.
    assert found["cut"] > 10
    assert strict == []
    with open_sessions(url) as sessions:
        result = CleverAgentsApp(AppConfig.model_validate(config), sessions=sessions).run_sync(
            "go on", session_id=session_id
        )
    assert result.output == "Let me see.\n\nFive."
    assert strict == []
