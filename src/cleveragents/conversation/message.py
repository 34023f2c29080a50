"""Messages of a session: what one may hold, checked where it is made."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from cleveragents.conversation.arguments import flat_call
from cleveragents.conversation.content import content_text
from cleveragents.errors import SessionValidationError
from cleveragents.values.json import json_object, json_value, whole_number
from cleveragents.values.text import clean_text, optional_text
from cleveragents.values.times import time_text, utc_now, utc_time


class MessageRole(StrEnum):
    """Whose message it is."""

    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """A message that has no place in a session yet. Its role is given as text too, and is a MessageRole then.

    ``content`` is text that is not blank. A list given as content becomes ``parts``, with its text rendering as
    the content. Only an assistant's message with ``tool_calls`` may have no text: None. A tool's message needs
    ``tool_call_id``. Raises SessionValidationError or InvalidValueError for what cannot be stored.
    """

    role: MessageRole | str
    content: str | None
    tool_call_id: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    parts: list[Any] | None = None
    agent: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check(self)

    @property
    def text(self) -> str:
        """What a person is shown: the content, or the names of the tools that are called instead."""
        return _text(self)

    def numbered(self, sequence: int, created_at: dt.datetime) -> SessionMessage:
        """This message at its place in a session."""
        return stored_message(
            sequence,
            self.role,
            self.content,
            self.tool_call_id,
            self.tool_calls,
            self.parts,
            self.agent,
            self.metadata,
            created_at,
        )


@dataclass(frozen=True, slots=True)
class SessionMessage:
    """One message of a session, at its ``sequence`` (from 0, without gaps). See MessageDraft for the rest."""

    sequence: int
    role: MessageRole | str
    content: str | None
    tool_call_id: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    parts: list[Any] | None = None
    agent: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    created_at: dt.datetime = field(default_factory=utc_now)

    def as_dict(self) -> dict[str, Any]:
        """The message as JSON data, its time in ISO 8601."""
        return {
            "sequence": self.sequence,
            "role": str(self.role),
            "content": self.content,
            "tool_call_id": self.tool_call_id,
            "tool_calls": self.tool_calls,
            "parts": self.parts,
            "agent": self.agent,
            "metadata": self.metadata,
            "created_at": time_text(self.created_at),
        }

    def __post_init__(self) -> None:
        object.__setattr__(self, "sequence", whole_number(self.sequence, "sequence"))
        object.__setattr__(self, "created_at", utc_time(self.created_at, "created_at"))
        _check(self)

    @property
    def text(self) -> str:
        """What a person is shown: the content, or the names of the tools that are called instead."""
        return _text(self)


def stored_message(
    sequence: int,
    role: MessageRole | str,
    content: str | None,
    tool_call_id: str | None,
    tool_calls: list[dict[str, Any]] | None,
    parts: list[Any] | None,
    agent: str | None,
    metadata: dict[str, Any],
    created_at: dt.datetime,
) -> SessionMessage:
    """A message of values that were checked when they were stored; checking them again would double the cost."""
    message = object.__new__(SessionMessage)
    put = object.__setattr__
    put(message, "sequence", sequence)
    put(message, "role", role)
    put(message, "content", content)
    put(message, "tool_call_id", tool_call_id)
    put(message, "tool_calls", tool_calls)
    put(message, "parts", parts)
    put(message, "agent", agent)
    put(message, "metadata", metadata)
    put(message, "created_at", created_at)
    return message


def _check(message: MessageDraft | SessionMessage) -> None:
    """Bring each field of a new message into its stored form, or refuse it."""
    try:
        role = MessageRole(message.role)
    except ValueError:
        raise SessionValidationError(
            f"role must be one of {', '.join(MessageRole)}, not {message.role!r:.40}"
        ) from None
    calls = _tool_calls(message.tool_calls, role)
    content, parts = _content(message.content, message.parts, required=calls is None)
    tool_call_id = optional_text(message.tool_call_id, "tool_call_id")
    if role is MessageRole.TOOL and tool_call_id is None:
        raise SessionValidationError("a tool message needs tool_call_id, the id of the call that it answers")
    put = object.__setattr__
    put(message, "role", role)
    put(message, "content", content)
    put(message, "parts", parts)
    put(message, "tool_calls", calls)
    put(message, "tool_call_id", tool_call_id)
    put(message, "agent", optional_text(message.agent, "agent"))
    put(message, "metadata", json_object(message.metadata, "metadata"))


def _content(content: Any, parts: Any, *, required: bool) -> tuple[str | None, list[Any] | None]:
    """The text and the parts of a message. The text may be missing when it is not ``required``."""
    if isinstance(content, list | tuple):
        content, parts = None, content if parts is None else parts
    if parts is not None:
        if not isinstance(parts, list | tuple) or not parts:
            raise SessionValidationError(f"parts must be a list that is not empty, not {parts!r:.40}")
        parts = json_value(parts, "parts")
        content = content_text(parts) if content is None else content
    if content is None and not required:
        return None, parts
    if not isinstance(content, str):
        raise SessionValidationError(f"content must be text, or a list of parts, not {content!r:.40}")
    if not content or content.isspace():
        if required:
            raise SessionValidationError("content must hold something other than whitespace")
        return None, parts
    return clean_text(content), parts


def _tool_calls(calls: Any, role: MessageRole) -> list[dict[str, Any]] | None:
    if calls is None:
        return None
    if not isinstance(calls, Sequence) or not calls or not all(isinstance(call, Mapping) for call in calls):
        raise SessionValidationError("tool_calls must be a list of one or more mappings")
    if role is not MessageRole.ASSISTANT:
        raise SessionValidationError(f"only an assistant's message can have tool_calls, not a message of role {role}")
    checked: list[dict[str, Any]] = json_value(list(calls), "tool_calls")
    return checked


def _text(message: MessageDraft | SessionMessage) -> str:
    if message.content is not None:
        return message.content
    names = [call_name(call) for call in message.tool_calls or ()]
    return f"[calls {', '.join(names)}]"


def call_name(call: Mapping[str, Any]) -> str:
    """The name of the tool that a stored call is of, as a person is shown it."""
    name = flat_call(call).get("name")
    return name if isinstance(name, str) else "a tool"
