"""How a conversation is shown to an agent: pure functions over messages, nothing is read or stored here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from cleveragents.domain.values import dump_json, load_json
from cleveragents.errors import InvalidValueError

HISTORY_MESSAGES = 10
"""How many of the last messages go into a prompt, unless the configuration says otherwise."""

HISTORY_ASSISTANT_CHARACTERS = 500
"""Characters after which an assistant's message is cut in a prompt, unless the configuration says otherwise."""

HISTORY_CHARACTERS = 1_000_000
"""Characters of history that a prompt holds at most, so that one huge message does not spoil the runs after it."""

NO_ANSWER = "[no answer]"
"""What stands for the answer to a question that got none, so that nobody takes it for open."""

INTERRUPTED = "[interrupted]"
"""What marks text, or stands for a tool's result, that was cut off."""

_BYTES_A_TOKEN = 4
_TOKENS_A_MESSAGE = 4


class HistoryMessage(Protocol):
    """What a stored message shows of itself here: a context's and a session's messages both do."""

    @property
    def role(self) -> str: ...  # noqa: D102
    @property
    def content(self) -> Any: ...  # noqa: D102
    @property
    def metadata(self) -> Mapping[str, Any]: ...  # noqa: D102


def format_prompt(
    prompt: str,
    messages: Sequence[HistoryMessage],
    *,
    limit: int = HISTORY_MESSAGES,
    assistant_limit: int = HISTORY_ASSISTANT_CHARACTERS,
) -> str:
    """``prompt`` after the last ``limit`` of ``messages``, oldest first, each with its role.

    An assistant's message longer than ``assistant_limit`` characters is cut there and marked with ``…``. A
    question that got no answer, because its run failed or was ended, is marked so that nobody takes it for open;
    when it is asked again it stands there once, as the prompt. The oldest are left out beyond a million characters.
    Without history the prompt comes back unchanged.
    """
    recent = list(messages[-limit:]) if limit > 0 else []
    while recent and recent[-1].role == "user" and content_text(recent[-1].content) == prompt:
        recent.pop()
    while recent and sum(len(content_text(message.content)) for message in recent) > HISTORY_CHARACTERS:
        recent.pop(0)
    if not recent:
        return prompt
    lines = ["Conversation so far:"]
    for message, following in zip(recent, [*recent[1:], None], strict=True):
        text = content_text(message.content)
        if message.role == "assistant" and len(text) > assistant_limit:
            text = text[:assistant_limit] + "…"
        if message.metadata.get("interrupted"):
            text += f" {INTERRUPTED}"
        lines.append(f"{message.role}: {text}")
        if message.role == "user" and (following is None or following.role == "user"):
            lines.append(f"assistant: {NO_ANSWER}")
    return "\n".join([*lines, "", prompt])


def content_text(content: Any) -> str:
    """The text of a message's content: text as it is, parts rendered and joined, a value as JSON.

    A part is text, or a mapping with a ``text``; any other part is named in brackets, such as ``[image]``.
    """
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        return " ".join(_part_texts(content))
    return dump_json(content)


def _part_texts(parts: Iterable[Any]) -> Iterable[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]
        elif isinstance(part, dict):
            kind = part.get("type") or next(iter(part), "part")
            yield f"[{str(kind).removeprefix('input_').removesuffix('_url')}]"
        else:
            yield f"[{part!r}]" if part is None else str(part)


# --- a conversation in an llm's own roles ------------------------------------------------------------------


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
    arguments: dict[str, Any]
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


@dataclass(frozen=True, slots=True)
class Window:
    """How much of a conversation is shown: at most so many of the newest turns, messages, and estimated tokens."""

    turns: int | None = None
    messages: int | None = None
    tokens: int | None = None

    def newest(self, turns: Sequence[Turn]) -> list[Turn]:
        """The last of ``turns`` that fit, oldest first. A turn is kept whole or left out, and so is all before it."""
        messages = tokens = 0
        start = len(turns)
        while start > 0:
            turn = turns[start - 1]
            messages, tokens = messages + turn.messages, tokens + turn.tokens
            used = ((len(turns) - start + 1, self.turns), (messages, self.messages), (tokens, self.tokens))
            if any(limit is not None and size > limit for size, limit in used):
                break
            start -= 1
        return list(turns[start:])


def estimated_tokens(text: str) -> int:
    """About how many tokens ``text`` is: one for four bytes, which is four letters of English."""
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_A_TOKEN)


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
        if message.metadata.get("interrupted"):
            text = f"{text} {INTERRUPTED}".strip()
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
                    results[call.id] = replace(call, result=content_text(message.content))
                    break
    return [
        (message, tuple(results[call.id] for call in calls) if len(results) == len(calls) else ())
        for message, results, calls in said
    ]


def _call(call: Mapping[str, Any]) -> ToolCall | None:
    """A stored call, also in the nested form in which others write it; None when it has no id or no name."""
    inner = call.get("function")
    given = {**call, **inner} if isinstance(inner, Mapping) else call
    call_id, name, arguments = given.get("id"), given.get("name"), given.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = load_json(arguments)
        except InvalidValueError:
            arguments = {}
    if not isinstance(call_id, str) or not isinstance(name, str):
        return None
    return ToolCall(call_id, name, dict(arguments) if isinstance(arguments, Mapping) else {}, "")
