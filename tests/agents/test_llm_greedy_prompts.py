"""Templates of system prompts that would take all the time or memory: each ends, and blocks nobody meanwhile."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cleveragents.agents.llm.instructions import instructions
from cleveragents.errors import LLMError
from support.command import COMMAND, environment

CONTEXT = {"long": "x" * 30_000, "name": "Ada"}
ENDLESS = "{% for a in context.long %}{% for b in context.long %}{% endfor %}{% endfor %}"


def peak():
    """The most memory that this process has used, in megabytes."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (1_000_000 if sys.platform == "darwin" else 1_000)


def children(pid):
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in files for child in file.read_text(encoding="utf-8").split()]


@pytest.mark.parametrize(
    "template",
    [
        "{{ context.long" + " | tojson | tojson" * 40 + " }}",
        "{% for a in context.long %}{{ context.long | list | sort | string }}{% endfor %}",
    ],
)
def test_a_greedy_template_ends_and_takes_nothing_here(template):
    before = peak()
    with pytest.raises(LLMError, match="agent planner: system prompt: "):
        asyncio.run(instructions("planner", template, CONTEXT))
    assert peak() < before + 30


def test_an_endless_template_ends_at_a_limit_and_others_go_on_meanwhile():
    async def both():
        rendering = asyncio.ensure_future(
            instructions("planner", "{{ 999999999 | round(999999999, 'floor') }}", CONTEXT)
        )
        turns = 0
        while not rendering.done():
            turns += 1
            await asyncio.sleep(0.01)
        return rendering, turns

    rendering, turns = asyncio.run(both())
    assert str(rendering.exception()) == "agent planner: system prompt: stopped at the time limit of 10 s"
    assert turns > 10


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_ends_a_run_that_renders_an_endless_template(tmp_path, number):
    path = tmp_path / "planner.yaml"
    path.write_text(
        f'agents:\n  planner:\n    type: llm\n    llm: openai:any\n    base_url: "http://127.0.0.1:9/v1"\n'
        f'    system_prompt: "{ENDLESS}"\ncontext: {{long: {"x" * 30_000}}}\n',
        encoding="utf-8",
    )
    child = subprocess.Popen(
        [*COMMAND, "run", str(path), "go"],
        env=environment(tmp_path, {"OPENAI_API_KEY": "any"}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )

    def renderers():
        return [pid for pid in children(child.pid) if b"unsafe_child" in Path(f"/proc/{pid}/cmdline").read_bytes()]

    while child.poll() is None and not renderers():
        os.sched_yield()
    child.send_signal(number)
    _, stderr = child.communicate(timeout=20)
    assert stderr.split() == [b"interrupted"]
    assert child.returncode == 130


def test_a_prompt_with_plain_names_starts_no_process():
    before = children(os.getpid())

    async def without_a_loop():
        return instructions("planner", "Hi {{ context.name }}, {{context.deep.er}}", {**CONTEXT, "deep": {"er": [1]}})

    steps = asyncio.run(without_a_loop())
    with pytest.raises(StopIteration) as done:
        steps.send(None)
    assert done.value.value == "Hi Ada, [1]"
    assert children(os.getpid()) == before
