"""Tools made of a piece of code, and run."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from cleveragents import Message, Reply, ToolAgent
from cleveragents.agents.events import ToolPrinted, listening
from cleveragents.errors import ToolError

everywhere = pytest.mark.parametrize("unsafe", [False, True], ids=["sandboxed", "unsafe"])
"""Runs a test in the sandbox and as ordinary Python."""


def call(code: str, content: Any = "", context: Mapping[str, Any] | None = None, **options: Any) -> Reply:
    """What a tool of ``code`` replies. It has time enough, however busy the machine is."""
    tool = ToolAgent("tool", code, **{"time_limit": 60, **options})
    return asyncio.run(tool.process(Message(content, context or {})))


def failure(code: str, content: Any = "", context: Mapping[str, Any] | None = None, **options: Any) -> str:
    """Why a tool of ``code`` fails: the one line, without the tool's name."""
    with pytest.raises(ToolError) as caught:
        call(code, content, context, **options)
    assert str(caught.value) == f"agent tool: {caught.value.reason}"
    assert "\n" not in caught.value.reason
    assert caught.value.__suppress_context__  # a traceback would show the machinery
    return caught.value.reason


def printed(code: str, **options: Any) -> tuple[Any, str]:
    """The outcome of a tool of ``code``, a Reply or a ToolError, and what it printed."""
    events: list[Any] = []
    outcome: Reply | ToolError
    with listening(events.append):
        try:
            outcome = call(code, **options)
        except ToolError as error:
            outcome = error
    assert all(isinstance(event, ToolPrinted) and event.agent == "tool" for event in events)
    return outcome, "".join(event.text for event in events)
