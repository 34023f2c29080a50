"""The conversation of a context as text for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cleveragents.contexts.message import ContextMessage
from cleveragents.conversation.reserved import broken_off
from cleveragents.values.json import dump_json
from cleveragents.values.text import indented


def history_text(messages: Iterable[ContextMessage], shown: Callable[[str], str], *, metadata: bool) -> str:
    """A line for each message, times in UTC and further lines indented, and one for its ``metadata``.

    ``shown`` makes text what may be seen where it goes: ``terminal_text`` for a terminal.
    """
    lines = []
    for message in messages:
        text = indented(shown(message.text))
        mark = f" [{why}]" if (why := broken_off(message.metadata)) else ""
        lines.append(f"[{message.timestamp:%Y-%m-%d %H:%M:%S} UTC] {message.role}: {text}{mark}")
        if metadata and message.metadata:
            lines.append(f"    metadata: {dump_json(message.metadata)}")
    return shown("\n".join(lines))
