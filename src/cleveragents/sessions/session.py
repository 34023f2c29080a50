"""Sessions: a conversation with an id, numbered messages, what it used, and the plans it belongs to."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, cast

from cleveragents.conversation.message import MessageDraft, MessageRole, SessionMessage
from cleveragents.conversation.reserved import CONFIG, IMPORTED_FROM, reserved
from cleveragents.conversation.usage import TokenUsage, UsageEntry
from cleveragents.errors import InvalidInputError, SessionExportError, SessionImportError, SessionValidationError
from cleveragents.sessions.document import document_of, fields_of
from cleveragents.sessions.linked_plan import LinkedPlan, distinct_plans, plan_ids, with_plan
from cleveragents.values.ids import parse_ulid
from cleveragents.values.json import json_object, whole_number
from cleveragents.values.names import actor_name, namespace_name
from cleveragents.values.text import optional_text
from cleveragents.values.times import time_text, utc_now, utc_time

MAX_TAG_CHARACTERS = 100


class AutomationLevel(StrEnum):
    """How much a session's agents may do without asking."""

    MANUAL = "manual"
    REVIEW_BEFORE_APPLY = "review_before_apply"
    FULL_AUTOMATION = "full_automation"


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """All of a stored session but its messages and its ledger.

    ``activity`` orders sessions by their last change across processes and hosts, whatever their clocks say.
    ``first_words`` is the beginning of the user's first message, for lists; exports do not have it.
    """

    session_id: str
    namespace: str
    actor_name: str | None
    title: str | None
    automation_level: AutomationLevel | None
    message_count: int
    token_usage: TokenUsage
    linked_plans: list[LinkedPlan]
    tags: list[str]
    forked_from: str | None
    metadata: dict[str, Any]
    created_at: dt.datetime
    updated_at: dt.datetime
    activity: int
    first_words: str | None = None

    @property
    def linked_plan_ids(self) -> list[str]:
        """Ids of the linked plans, in the order in which they were linked."""
        return plan_ids(self.linked_plans)

    @property
    def only_imported(self) -> bool:
        """Whether the session was imported, and never run here since: its author chose nothing that runs here."""
        return IMPORTED_FROM in self.metadata and reserved(self.metadata, CONFIG) is None

    def as_cli_dict(self) -> dict[str, Any]:
        """What commands show, as JSON data."""
        return _facts(self) | {"first_words": self.first_words}

    def with_usage(self, entry: UsageEntry) -> SessionSummary:
        """This summary with one more entry of the ledger in its totals."""
        return replace(self, token_usage=self.token_usage.plus(entry))


@dataclass(slots=True)
class Session:
    """A whole conversation. Messages are numbered from 0 without gaps and kept in that order.

    Roles, levels and ids are accepted as text and kept in their stored form. Raises SessionValidationError
    (InvalidIdError, InvalidValueError) for what the model refuses.
    """

    session_id: str
    namespace: str = "local"
    actor_name: str | None = None
    title: str | None = None
    automation_level: AutomationLevel | str | None = None
    messages: list[SessionMessage] = field(default_factory=list)
    token_usage: TokenUsage = field(default_factory=TokenUsage)
    linked_plans: list[LinkedPlan] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    forked_from: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    created_at: dt.datetime = field(default_factory=utc_now)
    updated_at: dt.datetime = None  # type: ignore[assignment] # never seen: now, or the creation if that is later
    usage_entries: list[UsageEntry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.session_id = parse_ulid(self.session_id)
        self.namespace = namespace_name(self.namespace)
        self.actor_name = None if self.actor_name is None else actor_name(self.actor_name)
        self.title = optional_text(self.title, "title")
        self.automation_level = automation_level(self.automation_level)
        self.messages = _in_order(self.messages)
        self.linked_plans = distinct_plans(self.linked_plans)
        self.tags = tag_list(self.tags)
        self.forked_from = None if self.forked_from is None else parse_ulid(self.forked_from)
        self.metadata = json_object(self.metadata, "metadata")
        self.created_at = utc_time(self.created_at, "created_at")
        if self.updated_at is None:
            self.updated_at = max(utc_now(), self.created_at)
        self.updated_at = utc_time(self.updated_at, "updated_at")
        if self.updated_at < self.created_at:
            raise SessionValidationError("updated_at must not be before created_at")
        if not isinstance(self.token_usage, TokenUsage):
            raise SessionValidationError(f"token_usage must be a TokenUsage, not {self.token_usage!r:.40}")

    def append_message(
        self,
        role: MessageRole | str,
        content: str | Sequence[Any] | None,
        tool_call_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        tool_calls: Sequence[Mapping[str, Any]] | None = None,
        parts: Sequence[Any] | None = None,
        agent: str | None = None,
    ) -> SessionMessage:
        """Add a message with the next sequence number."""
        draft = message_draft(role, content, tool_call_id, metadata, tool_calls=tool_calls, parts=parts, agent=agent)
        message = draft.numbered(len(self.messages), utc_now())
        self.messages.append(message)
        self._touch()
        return message

    def get_messages(self, limit: int | None = None, offset: int = 0) -> list[SessionMessage]:
        """At most ``limit`` messages from the one at ``offset`` on. Past the end there are none."""
        start = whole_number(offset, "offset")
        stop = None if limit is None else start + whole_number(limit, "limit")
        return self.messages[start:stop]

    @property
    def message_count(self) -> int:
        """How many messages there are."""
        return len(self.messages)

    @property
    def is_empty(self) -> bool:
        """Whether there is no message."""
        return not self.messages

    @property
    def last_message(self) -> SessionMessage | None:
        """The newest message, if there is one."""
        return self.messages[-1] if self.messages else None

    def link_plan(self, plan_id: str, phase: str | None = None, state: str | None = None) -> None:
        """Link a plan; linked again, it takes on the phase and state that are given."""
        self.linked_plans = with_plan(self.linked_plans, LinkedPlan(plan_id, phase, state))
        self._touch()

    @property
    def linked_plan_ids(self) -> list[str]:
        """Ids of the linked plans, in the order in which they were linked."""
        return plan_ids(self.linked_plans)

    def as_summary(self, message_count: int) -> SessionSummary:
        """The summary of a session with ``message_count`` messages that are not here, not stored yet."""
        shared = {each.name for each in fields(SessionSummary)} & {each.name for each in fields(self)}
        values = {name: getattr(self, name) for name in shared}
        return SessionSummary(message_count=message_count, activity=0, **values)

    def as_export_dict(self) -> dict[str, Any]:
        """The export document, keys in their documented order, with its checksum.

        Raises SessionExportError when something was put into the session that no document can hold.
        """
        try:
            found = {each.name: getattr(self, each.name) for each in fields(self)}
            return document_of(found | {"messages": _in_order(self.messages)})
        except InvalidInputError as error:
            raise SessionExportError(f"session {self.session_id} cannot be exported: {error}") from error

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Session:
        """The session that a document of ``read_document`` describes, every field checked.

        Raises SessionImportError naming the field.
        """
        found = fields_of(document)
        try:
            return cls(**found)
        except InvalidInputError as error:
            raise SessionImportError(f"the document cannot be imported: {error}") from error

    def as_cli_dict(self, recent: int = 5) -> dict[str, Any]:
        """What commands show: everything but the messages, of which the last ``recent`` as text."""
        shown = self.messages[max(0, len(self.messages) - whole_number(recent, "recent")) :]
        return _facts(self) | {
            "recent_messages": [
                {
                    "sequence": message.sequence,
                    "role": str(message.role),
                    "agent": message.agent,
                    "content": message.text,
                    "created_at": time_text(message.created_at),
                }
                for message in shown
            ],
        }

    def _touch(self) -> None:
        self.updated_at = max(utc_now(), self.updated_at)


def message_draft(
    role: MessageRole | str,
    content: str | Sequence[Any] | None,
    tool_call_id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    *,
    tool_calls: Sequence[Mapping[str, Any]] | None = None,
    parts: Sequence[Any] | None = None,
    agent: str | None = None,
) -> MessageDraft:
    """A draft of the arguments with which messages are appended, in their order."""
    return MessageDraft(
        role,
        cast("str | None", content),
        tool_call_id=tool_call_id,
        tool_calls=cast("list[dict[str, Any]] | None", tool_calls),
        parts=cast("list[Any] | None", parts),
        agent=agent,
        metadata=cast("dict[str, Any]", metadata),
    )


def automation_level(value: AutomationLevel | str | None) -> AutomationLevel | None:
    """The level that ``value`` names. Raises SessionValidationError."""
    try:
        return None if value is None else AutomationLevel(value)
    except ValueError:
        raise SessionValidationError(
            f"automation_level must be one of {', '.join(AutomationLevel)}, not {value!r:.40}"
        ) from None


def tag_list(tags: Iterable[str]) -> list[str]:
    """The tags in order, each once. A tag is printable text of at most 100 characters."""
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise SessionValidationError(f"tags must be a list of texts, not {tags!r:.40}")
    chosen = set()
    for tag in tags:
        if not isinstance(tag, str) or not tag.isprintable() or tag != tag.strip() or not tag:
            raise SessionValidationError(f"a tag must be printable text without outer spaces, not {tag!r:.40}")
        if len(tag) > MAX_TAG_CHARACTERS:
            raise SessionValidationError(f"tag {tag[:40]!r}… is longer than {MAX_TAG_CHARACTERS} characters")
        chosen.add(tag)
    return sorted(chosen)


def _in_order(messages: Iterable[SessionMessage]) -> list[SessionMessage]:
    ordered = list(messages)
    for expected, message in enumerate(ordered):
        check_sequence(message, expected)
    return ordered


def check_sequence(message: SessionMessage, expected: int) -> None:
    """Raise SessionValidationError unless ``expected`` is the number of ``message``."""
    if message.sequence != expected:
        raise SessionValidationError(
            f"messages must be ordered by sequence, from 0 and without gaps: found {message.sequence} "
            f"where {expected} belongs"
        )


def _facts(session: Session | SessionSummary) -> dict[str, Any]:
    """What commands show of a session besides its messages."""
    return {
        "session_id": session.session_id,
        "namespace": session.namespace,
        "actor_name": session.actor_name,
        "title": session.title,
        "automation_level": None if session.automation_level is None else str(session.automation_level),
        "message_count": session.message_count,
        "token_usage": {
            "input_tokens": session.token_usage.input_tokens,
            "output_tokens": session.token_usage.output_tokens,
            "estimated_cost": session.token_usage.estimated_cost,
            "cost_complete": session.token_usage.cost_complete,
        },
        "linked_plan_ids": session.linked_plan_ids,
        "tags": list(session.tags),
        "forked_from": session.forked_from,
        "metadata": session.metadata,
        "created_at": time_text(session.created_at),
        "updated_at": time_text(session.updated_at),
    }
