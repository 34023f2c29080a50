"""The content of a message as text, and the words that stand where there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from cleveragents.values.json import dump_json

NO_ANSWER = "[no answer]"
"""What stands for the answer to a question that got none, so that nobody takes it for open."""

CUT_OFF = "[interrupted]"
"""What marks text, or stands for a tool's result, that was cut off."""

NOTHING = "[nothing]"
"""What stands for content that is blank, where some text has to be."""


class HistoryMessage(Protocol):
    """What a stored message shows of itself here: a context's and a session's messages both do."""

    @property
    def role(self) -> str: ...  # noqa: D102
    @property
    def content(self) -> Any: ...  # noqa: D102
    @property
    def metadata(self) -> Mapping[str, Any]: ...  # noqa: D102


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
