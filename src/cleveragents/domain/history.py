"""How a conversation is shown to an agent: pure functions over messages, nothing is read or stored here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from cleveragents.domain.values import dump_json

HISTORY_MESSAGES = 10
"""How many of the last messages go into a prompt, unless the configuration says otherwise."""

HISTORY_ASSISTANT_CHARACTERS = 500
"""Characters after which an assistant's message is cut in a prompt, unless the configuration says otherwise."""


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
    when it is asked again it stands there once, as the prompt. Without history the prompt comes back unchanged.
    """
    recent = list(messages[-limit:]) if limit > 0 else []
    while recent and recent[-1].role == "user" and content_text(recent[-1].content) == prompt:
        recent.pop()
    if not recent:
        return prompt
    lines = ["Conversation so far:"]
    for message, following in zip(recent, [*recent[1:], None], strict=True):
        text = content_text(message.content)
        if message.role == "assistant" and len(text) > assistant_limit:
            text = text[:assistant_limit] + "…"
        if message.metadata.get("interrupted"):
            text += " [interrupted]"
        lines.append(f"{message.role}: {text}")
        if message.role == "user" and (following is None or following.role == "user"):
            lines.append("assistant: [no answer]")
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
