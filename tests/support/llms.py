"""Llm agents, asked."""

import asyncio
from typing import Any

import pytest

from cleveragents import LLMAgent, Message, Reply
from cleveragents.agents.events import AgentEvent, LLMUsed, TextDelta, listening
from cleveragents.errors import LLMError

KEY = "sk-live-0123456789abcdef"
"""A key of the form that providers give out."""


def ask(agent: LLMAgent, content: Any = "What?", context: dict[str, Any] | None = None) -> Reply:
    """What ``agent`` replies, in an event loop of its own."""
    return asyncio.run(agent.process(Message(content, context or {})))


def told(agent: LLMAgent, content: Any = "What?", context: dict[str, Any] | None = None) -> tuple[Reply, list[Any]]:
    """What ``agent`` replies, and what it told meanwhile, but for what it used."""
    events: list[AgentEvent] = []
    with listening(events.append):
        reply = ask(agent, content, context)
    return reply, [event for event in events if not isinstance(event, LLMUsed)]


def failure(agent: LLMAgent, content: Any = "What?", context: dict[str, Any] | None = None) -> str:
    """Why ``agent`` fails: one line, after the names of agent and llm."""
    with pytest.raises(LLMError) as caught:
        ask(agent, content, context)
    assert caught.value.agent == agent.name
    assert str(caught.value).splitlines() == [str(caught.value)]
    # A traceback would show what the line keeps back.
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    start = f"agent {agent.name}: llm {agent.llm}: "
    assert str(caught.value).startswith(start)
    return str(caught.value).removeprefix(start)


def text_of(events: list[Any]) -> str:
    """What was told as text, put together."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))
