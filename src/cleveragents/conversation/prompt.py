"""The composed prompt: what was said in a context before, as text in front of a new prompt."""

from __future__ import annotations

from collections.abc import Sequence

from cleveragents.conversation.content import CUT_OFF, NO_ANSWER, HistoryMessage, content_text
from cleveragents.conversation.reserved import broken_off
from cleveragents.values.text import indented

HISTORY_MESSAGES = 10
"""How many of the last messages go into a prompt, unless the configuration says otherwise."""

HISTORY_ASSISTANT_CHARACTERS = 500
"""Characters after which an assistant's message is cut in a prompt, unless the configuration says otherwise."""

HISTORY_CHARACTERS = 1_000_000
"""Characters of history that a prompt holds at most, so that one huge message does not spoil the runs after it."""


def format_prompt(
    prompt: str,
    messages: Sequence[HistoryMessage],
    *,
    limit: int = HISTORY_MESSAGES,
    assistant_limit: int = HISTORY_ASSISTANT_CHARACTERS,
) -> str:
    """``prompt`` after the last ``limit`` of ``messages``, oldest first, each with its role, further lines indented.

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
        if broken_off(message.metadata):
            text += f" {CUT_OFF}"
        lines.append(f"{message.role}: {indented(text)}")
        if message.role == "user" and (following is None or following.role == "user"):
            lines.append(f"assistant: {NO_ANSWER}")
    return "\n".join([*lines, "", prompt])
