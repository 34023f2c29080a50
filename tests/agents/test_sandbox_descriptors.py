"""A process that may open few files more: the sandbox says so in one line, and nobody waits for ever."""

import subprocess
import sys

import pytest

SCRIPT = """
import asyncio, os, resource, sys
from cleveragents import Message, ToolAgent
from cleveragents.agents.tool import agent, sandbox, unsafe
from cleveragents.errors import ToolError

async def main():
    import pydantic_monty
    tool = ToolAgent("tool", "result = 1")
    open_now = len(os.listdir("/dev/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + int(sys.argv[1]),) * 2)
    for _ in range(2):
        try:
            print((await tool.process(Message(""))).content)
        except ToolError as error:
            print(error)

asyncio.run(main())
"""


@pytest.mark.parametrize("room", [0, 1, 4, 8, 10])
def test_a_tool_without_descriptors_fails_in_one_line(room):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(room)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines() == ["agent tool: the sandbox cannot start: Too many open files"] * 2
    assert done.stderr == ""
