"""A conversation in an llm's own roles: turns of steps and calls, whatever was stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from cleveragents.conversation.arguments import Arguments, flat_call, kept_arguments
from cleveragents.conversation.content import CUT_OFF, NO_ANSWER, HistoryMessage, content_text
from cleveragents.conversation.reserved import FAILED, broken_off, reserved
from cleveragents.values.json import dump_json

BYTES_A_TOKEN = 4
_TOKENS_A_MESSAGE = 4


class StoredMessage(HistoryMessage, Protocol):
    """What a session's message shows of itself besides."""

    @property
    def tool_calls(self) -> Sequence[Mapping[str, Any]] | None: ...  # noqa: D102
    @property
    def tool_call_id(self) -> str | None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class ToolCall:
    """An llm's call of a tool together with what came back, since neither may be shown to an llm alone."""

    id: str
    name: str
    arguments: Arguments
    result: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """Something an assistant said, and the calls it made in the same breath."""

    text: str
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and all that followed it; the last step is always an answer without calls."""

    question: str
    steps: tuple[Step, ...]

    @property
    def unanswered(self) -> bool:
        """Whether nothing at all came of the question."""
        return self.steps == (Step(NO_ANSWER),)

    @property
    def messages(self) -> int:
        """How many messages an llm is sent: question, answers, calls and results."""
        return 1 + sum(1 + len(step.calls) for step in self.steps)

    @property
    def tokens(self) -> int:
        """About how many tokens an llm is sent."""
        calls = [call for step in self.steps for call in step.calls]
        texts = [self.question, *(step.text for step in self.steps)]
        texts += [text for call in calls for text in (call.name, dump_json(call.arguments), call.result)]
        return sum(map(estimated_tokens, texts)) + _TOKENS_A_MESSAGE * self.messages


def estimated_tokens(text: str) -> int:
    """About how many tokens ``text`` is: one for four bytes, which is four letters of English."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)


def turns_of(messages: Iterable[StoredMessage], prompt: str | None = None) -> list[Turn]:
    """The turns of a conversation, in a form that every llm accepts, whatever was stored.

    Calls stand with their results in the order of the calls. Results without a call, calls without all of their
    results, system messages, and what comes before the first question are left out. A question without an answer
    is followed by NO_ANSWER; when it is what ``prompt`` asks again, and nothing came of it, it is left out.
    """
    groups: list[list[StoredMessage]] = []
    for message in messages:
        if message.role == "user":
            groups.append([message])
        elif groups:
            groups[-1].append(message)
    turns = [Turn(content_text(question.content), tuple(_steps(rest))) for question, *rest in groups]
    while prompt is not None and turns and turns[-1].unanswered and turns[-1].question == prompt:
        turns.pop()
    return turns


def _steps(messages: Sequence[StoredMessage]) -> Iterator[Step]:
    """What an assistant said and called in one turn. Texts next to each other are one, since roles must alternate."""
    before = ""
    for message, calls in _with_calls(messages):
        text = content_text(message.content)
        if broken_off(message.metadata):
            text = f"{text} {CUT_OFF}".strip()
        text = "\n\n".join(part for part in (before, text) if part.strip())
        if calls:
            yield Step(text, calls)
        before = "" if calls else text
    yield Step(before or NO_ANSWER)


def _with_calls(messages: Sequence[StoredMessage]) -> list[tuple[StoredMessage, tuple[ToolCall, ...]]]:
    """The assistant's messages, each with its calls if every one of them got a result after it."""
    said: list[tuple[StoredMessage, dict[str, ToolCall], list[ToolCall]]] = []
    for message in messages:
        if message.role == "assistant":
            calls = [_call(call) for call in message.tool_calls or ()]
            known = [call for call in calls if call is not None and call.id and call.name]
            # A call that cannot be told from another one, or cannot be read, can have no result.
            said.append((message, {}, known if len({call.id for call in known}) == len(calls) else []))
        elif message.role == "tool":
            for _, results, calls_made in reversed(said):
                call = next((each for each in calls_made if each.id == message.tool_call_id), None)
                if call is not None and call.id not in results:
                    failed = bool(reserved(message.metadata, FAILED))
                    results[call.id] = replace(call, result=content_text(message.content), failed=failed)
                    break
    return [
        (message, tuple(results[call.id] for call in calls) if len(results) == len(calls) else ())
        for message, results, calls in said
    ]


def _call(call: Mapping[str, Any]) -> ToolCall | None:
    """A stored call, also in the nested form in which others write it; None when it has no id or no name."""
    given = flat_call(call)
    call_id, name = given.get("id"), given.get("name")
    if not isinstance(call_id, str) or not isinstance(name, str):
        return None
    return ToolCall(call_id, name, kept_arguments(given.get("arguments")), "")
