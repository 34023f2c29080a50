"""How an llm's answer ended: by itself, or cut off before it was whole."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse, ToolCallPart

_WINDOW = {"model_context_window_exceeded", "model_length"}
"""What providers call it when question and answer together are more than the llm can hold."""

_SHORTEN = "shorten the prompt, or its history"
_MISCOUNTED = 16
"""Tokens by which servers may count another length of an answer than its limit, at least."""

_WHOLE = {"stop", "tool_call"}
_LONGEST_REASON = 40


@dataclass(frozen=True, slots=True)
class CutOff:
    """Why an answer was cut off: ``reason`` in one word, and as a sentence that says what to do."""

    reason: str
    told: str


def cut_off(response: ModelResponse, max_tokens: int | None) -> CutOff | None:
    """Why ``response`` is not the whole answer; None where the llm came to its end by itself.

    ``max_tokens`` is the limit that was asked for. The reason is ``length``, ``window``, ``content_filter``,
    ``refusal``, or, of a server with words of its own, its word.
    """
    details = response.provider_details or {}
    given = str(details.get("finish_reason") or "")
    if details.get("refusal") or given == "refusal":
        return CutOff("refusal", "the llm refused to go on; ask in other words")
    if given in _WINDOW:
        return CutOff("window", f"the llm's window is full; {_SHORTEN}")
    if response.finish_reason == "length":
        return _at_a_limit(response, max_tokens)
    if response.finish_reason == "content_filter":
        return CutOff("content_filter", "its provider's filter stopped it; ask in other words")
    if response.finish_reason in _WHOLE or not given:
        return None
    word = given[:_LONGEST_REASON]
    return CutOff(word, f"its server ended it with {word!r}; ask again")


def is_cut_call(calls: Iterable[ToolCallPart]) -> bool:
    """Whether one of the ``calls`` of an answer that was cut off is not whole itself: its arguments do not end."""
    return any(isinstance(call.args, str | None) and not _is_json(call.args or "") for call in calls)


def _at_a_limit(response: ModelResponse, max_tokens: int | None) -> CutOff:
    if max_tokens is None:
        return CutOff("length", "at its provider's limit; raise 'max_tokens'")
    if _is_below(response, max_tokens):
        where = f"before its limit of {max_tokens:,} tokens, so the llm's window is full, or its server allows less"
        return CutOff("window", f"{where}; {_SHORTEN}")
    return CutOff("length", f"at the limit of {max_tokens:,} tokens; raise 'max_tokens'")


def _is_below(response: ModelResponse, max_tokens: int) -> bool:
    """Whether the answer is shorter than it may be. Servers do not all count the same, so a tenth is left over."""
    return 0 < response.usage.output_tokens < max_tokens - max(max_tokens // 10, _MISCOUNTED)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
