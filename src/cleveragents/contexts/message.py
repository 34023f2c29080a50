"""One message of a context: what it may hold, and the line it is stored as."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cleveragents.conversation.content import content_text
from cleveragents.conversation.reserved import TOOL_CALLS, reserved
from cleveragents.errors import InvalidValueError
from cleveragents.values.json import dump_json, json_object, json_value, load_record
from cleveragents.values.times import time_text

ROLES = ("user", "assistant", "system", "tool")


@dataclass(frozen=True, slots=True)
class ContextMessage:
    """A message as it is stored. ``timestamp`` is aware, in UTC.

    ``content`` is text or a list of parts; None only for an assistant's message whose metadata has ``tool_calls``,
    written by a user or, under our own key, taken over from a session.
    """

    role: str
    content: Any
    timestamp: datetime
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The content as text, parts rendered and joined."""
        return content_text(self.content)

    def as_dict(self) -> dict[str, Any]:
        """The message as a JSON object, its time in ISO 8601."""
        return {
            "role": self.role,
            "content": self.content,
            "timestamp": time_text(self.timestamp),
            "metadata": self.metadata,
        }

    def as_line(self) -> bytes:
        """The message as one line of ``messages.jsonl``."""
        return dump_json(self.as_dict()).encode() + b"\n"


def new_message(
    role: str, content: Any, metadata: Mapping[str, Any] | None = None, timestamp: datetime | None = None
) -> ContextMessage:
    """A message checked and converted by the rules of ``values.json``. Raises InvalidValueError."""
    properties = json_object(metadata, "metadata")
    return ContextMessage(
        _role(role),
        _content(role, json_value(content, "content"), properties),
        datetime.now(UTC) if timestamp is None else _utc(timestamp),
        properties,
    )


def message_of(value: Any) -> ContextMessage:
    """The message that a JSON object of a stored file holds. Raises InvalidValueError naming what is wrong."""
    if not isinstance(value, dict):
        raise InvalidValueError("not a JSON object")
    missing = {"role", "content", "timestamp"} - value.keys()
    if missing:
        raise InvalidValueError(f"has no {', '.join(sorted(missing))}")
    metadata = value.get("metadata", {})
    if not isinstance(metadata, dict):
        raise InvalidValueError("must be a JSON object", "metadata")
    role = _role(value["role"])
    return ContextMessage(role, _content(role, value["content"], metadata), parse_time(value["timestamp"]), metadata)


def message_of_line(line: bytes) -> ContextMessage:
    """The message of one line of ``messages.jsonl``. Raises InvalidValueError naming what is wrong."""
    return message_of(load_record(line))


def parse_time(text: Any, where: str = "timestamp") -> datetime:
    """The aware UTC time of ISO 8601 ``text`` with an offset. Raises InvalidValueError, which names ``where``."""
    try:
        return _utc(datetime.fromisoformat(text), where)
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidValueError):
            raise
        raise InvalidValueError(f"{text!r:.60} is not a time in ISO 8601", where) from None


def _utc(time: datetime, where: str = "timestamp") -> datetime:
    if not isinstance(time, datetime):
        raise InvalidValueError(f"must be a datetime, not {type(time).__name__}", where)
    if time.utcoffset() is None:
        raise InvalidValueError("must say its time zone; use an aware datetime", where)
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise InvalidValueError(f"{time} is out of range", where) from None


def _role(role: Any) -> str:
    name = role.value if isinstance(role, enum.Enum) else role
    if name not in ROLES:
        raise InvalidValueError(f"{name!r:.60} is not one of {', '.join(ROLES)}", "role")
    return str(name)


def _content(role: str, content: Any, metadata: Mapping[str, Any]) -> Any:
    if isinstance(content, str | list):
        return content
    if content is not None:
        raise InvalidValueError(f"must be text or a list of parts, not {type(content).__name__}", "content")
    if role != "assistant" or not (metadata.get("tool_calls") or reserved(metadata, TOOL_CALLS)):
        raise InvalidValueError("only an assistant's message with tool_calls may be without", "content")
    return None
