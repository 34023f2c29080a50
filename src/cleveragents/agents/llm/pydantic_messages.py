"""A conversation as pydantic-ai's messages, which it sends to each provider in that one's own roles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, cast

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from cleveragents.conversation.transcript import Step, ToolCall, Turn
from cleveragents.values.ids import new_ulid


def model_messages(turns: Iterable[Turn]) -> list[ModelMessage]:
    """Requests and responses in turn, each call with its result after it; the system prompt is no part of them."""
    messages: list[ModelMessage] = []
    for turn in turns:
        messages.append(ModelRequest([UserPromptPart(turn.question)]))
        for step in turn.steps:
            messages += _step(step)
    return messages


def _step(step: Step) -> Iterator[ModelMessage]:
    text = [TextPart(step.text)] if step.text else []
    yield ModelResponse([*text, *(ToolCallPart(valid_name(call.name), call.arguments, call.id) for call in step.calls)])
    if step.calls:
        yield ModelRequest(results(step))


def as_kept(response: ModelResponse, step: Step) -> ModelResponse:
    """``response`` with text and arguments as ``step`` keeps them, so that a later turn begins with the same bytes."""
    arguments = {call.id: call.arguments for call in step.calls}
    text = step.text
    parts: list[ModelResponsePart] = []
    for part in response.parts:
        if isinstance(part, ToolCallPart):
            parts.append(replace(cast("Any", part), args=arguments[part.tool_call_id]))
        elif not isinstance(part, TextPart):
            parts.append(part)
        elif text:
            parts.append(replace(part, content=text))
            text = ""
    return replace(response, parts=parts)


def results(step: Step) -> list[ModelRequestPart]:
    """What the tools that were called in ``step`` gave back."""
    return [_result(call) for call in step.calls]


def _result(call: ToolCall) -> ToolReturnPart:
    # A failed call is told in the same words as when it failed.
    return ToolReturnPart(valid_name(call.name), call.result, call.id, outcome="failed" if call.failed else "success")


def valid_name(name: str) -> str:
    """``name`` as every provider takes it for a tool's: what an llm made up is sent back to it, or to another one."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "_"


def valid_calls(response: ModelResponse) -> ModelResponse:
    """``response`` with valid names of tools, and with an id for each call that no other call in it has."""
    seen: set[str] = set()
    parts: list[ModelResponsePart] = []
    for part in response.parts:
        if isinstance(part, ToolCallPart):
            call_id = part.tool_call_id
            if not call_id or call_id in seen:
                call_id = f"call_{new_ulid()}"
            seen.add(call_id)
            # What a provider added stays: some want it back.
            parts.append(replace(cast("Any", part), tool_name=valid_name(part.tool_name), tool_call_id=call_id))
        else:
            parts.append(part)
    return replace(response, parts=parts)
