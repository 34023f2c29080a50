"""A conversation as pydantic-ai's messages, which it sends to each provider in that one's own roles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from cleveragents.conversation.transcript import Step, ToolCall, Turn


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
    yield ModelResponse([*text, *(ToolCallPart(call.name, call.arguments, call.id) for call in step.calls)])
    if step.calls:
        yield ModelRequest([_result(call) for call in step.calls])


def _result(call: ToolCall) -> ToolReturnPart:
    # A failed call is told in the same words as when it failed.
    return ToolReturnPart(call.name, call.result, call.id, outcome="failed" if call.failed else "success")
