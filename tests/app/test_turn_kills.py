"""A run killed at any moment: what was acknowledged is there, in pairs, and the next run works."""

import json

import pytest

from cleveragents import AppConfig, CleverAgentsApp, ContextManager
from support.campaign import campaign
from support.killer import run_killer

CONFIG = {
    "agents": {
        "count": {
            "type": "tool",
            "code": 'context["turns"] = context.get("turns", 0) + 1; result = str(context["turns"])',
        }
    }
}

# Kills runs that go on for ever, and prints what it found wrong.
KILLER = """
import json, sys
from pathlib import Path
import cleveragents.agents.tool.sandbox, pydantic_monty
from cleveragents import AppConfig, CleverAgentsApp, ContextManager
from support.killer import lives

root, kills, config = Path(sys.argv[1]), int(sys.argv[2]), AppConfig.model_validate(json.loads(sys.argv[3]))
wrong, total = [], 0
ContextManager("talk", root)

def run_for_ever(life, acknowledge):
    app, context, number = CleverAgentsApp(config), ContextManager("talk", root), 0
    while True:
        app.run_sync(f"{life}/{number}", context=context)
        acknowledge(b"t")
        number += 1

for life, acknowledged in lives(kills, run_for_ever, after=range(1, 5), rounds=30_000):
    total += len(acknowledged)
    context = ContextManager.open("talk", root)
    mine = []
    for message in context.messages:
        if message.role == "user":
            mine.append([message.content, None])
        else:
            mine[-1][1] = message.content
    mine = [pair for pair in mine if pair[0].startswith(f"{life}/")]
    answered = [pair for pair in mine if pair[1] is not None]
    if not len(acknowledged) <= len(answered) <= len(acknowledged) + 1 or len(mine) > len(answered) + 1:
        wrong.append(f"life {life}: {len(acknowledged)} turns acknowledged, found {mine}")
    if context.global_context["turns"] < total:
        wrong.append(f"life {life}: {total} turns acknowledged, {context.global_context}")
print(json.dumps(wrong))
"""


@pytest.mark.campaign
def test_c01_killed_again_and_again_in_the_middle_of_turns(tmp_path):
    assert run_killer(KILLER, tmp_path, campaign(short=15, long=60), json.dumps(CONFIG), home=tmp_path) == []
    context = ContextManager.open("talk", root=tmp_path)
    before = context.global_context["turns"]
    result = CleverAgentsApp(AppConfig.model_validate(CONFIG)).run_sync("and now?", context=context)
    assert result.output == str(before + 1)
