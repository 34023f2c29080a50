"""The chunks of a streamed chat completion, whatever quality they come in, as ones that mean one thing.

Servers that speak OpenAI's chat API differ in what they make of it: totals of usage on every chunk, calls of tools
under one index, names that are repeated, reasoning between tags. What reads a stream afterwards takes that at its word,
so it is put right before.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from cleveragents.agents.llm.errors import FloodError

MAX_CALLS = 128
"""Calls of tools in one answer; as many as OpenAI's own API allows."""

MAX_ARGUMENTS = 2_000_000
"""Characters of the arguments of one call; as many bytes as a prompt may have."""

MAX_TOKENS = 10**12
"""More tokens than any request has; what reports more has not counted."""

_LONGEST_DOUBT = 20
"""Pieces of text after which an answer that says nothing yet is taken for one without reasoning."""

OPEN, CLOSE = "<think>", "</think>"
"""What some servers put reasoning between, at the beginning of the text of an answer."""


@dataclass(slots=True)
class _Call:
    """A call of a tool as far as it has come."""

    id: str
    name: str
    arguments: list[str] = field(default_factory=list)
    characters: int = 0

    def add(self, piece: str) -> None:
        self.arguments.append(piece)
        self.characters += len(piece)
        if self.characters > MAX_ARGUMENTS:
            raise FloodError(f"arguments of more than {MAX_ARGUMENTS:,} characters for one call of a tool")

    @property
    def is_whole(self) -> bool:
        try:
            json.loads("".join(self.arguments))
        except (ValueError, RecursionError):
            return False
        return True


class _Beginning:
    """The text of an answer as long as it may be reasoning between tags."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._tail = ""
        self._state = "unknown"  # then "reasoning" or not, then "answer"

    def split(self, text: str) -> tuple[str, str]:
        """The reasoning that is over with ``text``, and the text to be handed on."""
        if self._state == "answer":
            return "", text
        self._held.append(text)
        if self._state == "unknown":
            start = "".join(self._held).lstrip()
            if start.startswith(OPEN):
                self._state = "reasoning"
                self._tail = start
            elif not OPEN.startswith(start) or len(self._held) > _LONGEST_DOUBT:
                return "", self.rest()
            else:
                return "", ""
        else:
            # The end of a tag may be in one piece and its beginning in the one before.
            self._tail = self._tail[1 - len(CLOSE) :] + text
        if CLOSE not in self._tail:
            return "", ""
        thought, _, answer = self.rest().lstrip().removeprefix(OPEN).partition(CLOSE)
        return thought, answer.lstrip()

    def rest(self) -> str:
        """What is held back; nothing is from now on."""
        held, self._held, self._state = "".join(self._held), [], "answer"
        return held


class ChatChunks:
    """Puts the chunks of one answer right, in their order. Raises FloodError when they are more than an answer has."""

    def __init__(self) -> None:
        self._last: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._calls: list[_Call] = []
        self._by_index: dict[Any, _Call] = {}
        self._beginning = _Beginning()

    def feed(self, chunk: Any) -> list[Any]:
        """The chunks to be read in place of ``chunk``."""
        if not isinstance(chunk, dict) or "error" in chunk:
            return [chunk]
        self._report(chunk.pop("usage", None))
        self._last = {key: value for key, value in chunk.items() if key != "choices"}
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return []
        before: list[Any] = []
        delta = choice.get("delta")
        if isinstance(delta, dict):
            before = self._text(delta)
            if calls := delta.pop("tool_calls", None):
                for call in calls if isinstance(calls, list) else ():
                    if isinstance(call, dict):
                        self._call(call)
        if choice.get("finish_reason"):
            before += self._rest()
        return [*before, chunk]

    def end(self) -> list[Any]:
        """What is still to be read at the end of the answer: text that was held back, and the usage, once."""
        rest = self._rest()
        if self._usage:
            rest.append({**self._last, "choices": [], "usage": self._usage})
        return rest

    def _report(self, usage: Any) -> None:
        """What was reported last counts, field by field: never a sum, and nothing is lost to a null."""
        if isinstance(usage, dict):
            self._usage |= {key: value for key, value in usage.items() if _is_plausible(value)}

    def _text(self, delta: dict[str, Any]) -> list[Any]:
        """Hold text back while it may be the beginning of reasoning; reasoning is handed on as such.

        Only what an answer begins with is reasoning, however it is cut; a tag later on is text.
        """
        text = delta.get("content")
        if not isinstance(text, str) or not text:
            return []
        thought, answer = self._beginning.split(text)
        delta["content"] = answer
        before = [self._chunk({"reasoning_content": thought})] if thought.strip() else []
        if answer.strip() in {OPEN, CLOSE}:
            # A tag that is a chunk of its own would be taken for reasoning by what reads this.
            middle = answer.index("<") + 1
            delta["content"] = answer[middle:]
            before.append(self._chunk({"content": answer[:middle]}))
        return before

    def _rest(self) -> list[Any]:
        """The calls, and text that began like reasoning and never ended so: nothing of an answer is lost."""
        held = self._beginning.rest()
        calls, self._calls = self._calls, []
        # In two, so that a tag alone is not taken for one.
        deltas: list[dict[str, Any]] = [{"content": piece} for piece in (held[:1], held[1:]) if piece]
        for index, call in enumerate(calls):
            function = {"name": call.name, "arguments": "".join(call.arguments)}
            deltas.append(
                {"tool_calls": [{"index": index, "id": call.id or None, "type": "function", "function": function}]}
            )
        return [self._chunk(delta) for delta in deltas]

    def _call(self, delta: dict[str, Any]) -> None:
        """Add a piece to the call that it belongs to. Calls are handed on when they are whole."""
        function = delta.get("function")
        function = function if isinstance(function, dict) else {}
        name, given, call_id = function.get("name"), function.get("arguments"), delta.get("id")
        name = name if isinstance(name, str) else ""
        call_id = call_id if isinstance(call_id, str) else ""
        call = self._by_index.get(delta.get("index"), self._calls[-1] if self._calls and "index" not in delta else None)
        if call is None or _is_another(call, call_id, name):
            if len(self._calls) == MAX_CALLS:
                raise FloodError(f"more than {MAX_CALLS} calls of tools in one answer")
            call = _Call(call_id, name)
            self._calls.append(call)
            self._by_index[delta.get("index")] = call
        elif name != call.name and not call.arguments:
            call.name += name  # a name in pieces
        call.id = call.id or call_id
        if given:
            call.add(given if isinstance(given, str) else json.dumps(given))

    def _chunk(self, delta: dict[str, Any]) -> dict[str, Any]:
        return {**self._last, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def _is_another(call: _Call, call_id: str, name: str) -> bool:
    """Whether a piece under the index of ``call`` begins another one: some servers have one index for all."""
    if call_id and call.id and call_id != call.id:
        # Some give each piece an id of its own; a call has a name.
        return bool(name)
    if not name or not call.arguments:
        return False
    return name != call.name or (not call_id and call.is_whole)


def _is_plausible(value: Any) -> bool:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return 0 <= value <= MAX_TOKENS
    return value is not None
