"""A run killed at any moment: what was acknowledged is there, in pairs, and the next run works."""

import json
import subprocess
import sys

from cleveragents import AppConfig, CleverAgentsApp, ContextManager

CONFIG = {
    "agents": {
        "count": {
            "type": "tool",
            "code": 'context["turns"] = context.get("turns", 0) + 1; result = str(context["turns"])',
        }
    }
}

# Forks runs that go on for ever, kills each after a random number of acknowledged turns and a few thousand rounds of
# nothing, and prints what it found wrong. The parent never uses the sandbox: a fork could not share it.
KILLER = """
import json, os, random, signal, sys
from pathlib import Path
import cleveragents.agents.tool.sandbox, pydantic_monty
from cleveragents import AppConfig, CleverAgentsApp, ContextManager

root, kills, config = Path(sys.argv[1]), int(sys.argv[2]), AppConfig.model_validate(json.loads(sys.argv[3]))
chance, wrong, total = random.Random("seed"), [], 0
ContextManager("talk", root)

def run_for_ever(life, pipe):
    app, context, number = CleverAgentsApp(config), ContextManager("talk", root), 0
    while True:
        app.run_sync(f"{life}/{number}", context=context)
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
            os.write(2, repr(error).encode())
            os._exit(1)
    os.close(writing)
    acknowledged = os.read(reading, 1)
    for _ in range(chance.randrange(4)):
        acknowledged += os.read(reading, 1)
    for _ in range(chance.randrange(30_000)):
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(reading, 100):
        acknowledged += more
    os.close(reading)
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


def test_c01_killed_60_times_in_the_middle_of_turns(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(tmp_path), "60", json.dumps(CONFIG)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stderr == ""
    assert json.loads(done.stdout) == []
    context = ContextManager.open("talk", root=tmp_path)
    before = context.global_context["turns"]
    result = CleverAgentsApp(AppConfig.model_validate(CONFIG)).run_sync("and now?", context=context)
    assert result.output == str(before + 1)
