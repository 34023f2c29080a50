"""Sessions for everybody who uses them: checked on the way in, durable when a call returns."""

from __future__ import annotations

import builtins
import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from types import EllipsisType, TracebackType
from typing import Any, Self

from cleveragents.domain.identifiers import actor_name as checked_actor
from cleveragents.domain.identifiers import namespace_name, new_ulid, parse_ulid
from cleveragents.domain.merge import Removal, merged
from cleveragents.domain.message import MessageDraft, MessageRole, SessionMessage, optional_text
from cleveragents.domain.session import (
    AutomationLevel,
    LinkedPlan,
    Session,
    SessionSummary,
    message_draft,
    tag_list,
    with_plan,
)
from cleveragents.domain.session import (
    automation_level as checked_level,
)
from cleveragents.domain.times import utc_now
from cleveragents.domain.usage import TokenUsage, UsageEntry
from cleveragents.domain.values import json_object, whole_number
from cleveragents.sessions.repository import SessionRepository
from cleveragents.sessions.transfer import read_document, session_of

TURN_WAIT = 30.0
"""Seconds that a run waits for another run's turn on the same session."""

_ALL = 2**63 - 1


class SessionService:
    """Stored sessions. Use it as a context manager, or call ``close``; it may be shared by threads.

    Every call is one transaction, on disk when it returns. Ids may be in either case. Calls raise
    SessionNotFoundError for an unknown id, InvalidIdError for a malformed one, SessionValidationError and
    InvalidValueError for data that cannot be stored, and the other SessionServiceErrors when the database fails.
    """

    def __init__(self, repository: SessionRepository, now: Callable[[], dt.datetime] = utc_now) -> None:
        self._repository = repository
        self._now = now

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self._repository.close()

    # --- sessions -------------------------------------------------------------------------------------

    def create(
        self,
        actor_name: str | None = None,
        *,
        namespace: str = "local",
        title: str | None = None,
        automation_level: AutomationLevel | str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tags: Iterable[str] = (),
    ) -> Session:
        """Store a new session without messages."""
        now = self._now()
        session = Session(
            new_ulid(),
            namespace,
            actor_name,
            title,
            checked_level(automation_level),
            tags=tag_list(tags),
            metadata=json_object(metadata, "metadata"),
            created_at=now,
            updated_at=now,
        )
        self._repository.add(session)
        return session

    def get(self, session_id: str) -> Session:
        """The whole session, with every message."""
        return self._repository.get(parse_ulid(session_id))

    def summary(self, session_id: str) -> SessionSummary:
        """All but the messages and the ledger, at a cost that does not grow with them."""
        return self._repository.summary(parse_ulid(session_id))

    def list(
        self,
        *,
        limit: int | None = None,
        after: str | SessionSummary | None = None,
        actor_name: str | None = None,
        namespace: str | None = None,
        tag: str | None = None,
        imported_checksum: str | None = None,
    ) -> builtins.list[SessionSummary]:
        """Sessions that match all that is given, newest activity first, ties by id.

        The next page begins ``after`` the last summary of this one, or after the id of a session.
        ``imported_checksum`` finds what was imported from a document.
        """
        return self._repository.page(
            _ALL if limit is None else whole_number(limit, "limit"),
            parse_ulid(after) if isinstance(after, str) else after,
            actor_name=None if actor_name is None else checked_actor(actor_name),
            namespace=None if namespace is None else namespace_name(namespace),
            tag=None if tag is None else tag_list([tag])[0],
            imported_checksum=imported_checksum,
        )

    def delete(self, session_id: str) -> None:
        """Remove the session and everything that belongs to it, for good."""
        self._repository.delete(parse_ulid(session_id))

    def update(
        self,
        session_id: str,
        *,
        title: str | EllipsisType | None = ...,
        metadata: Mapping[str, Any] | EllipsisType = ...,
        removed: Iterable[Removal] = (),
        automation_level: AutomationLevel | str | EllipsisType | None = ...,
        tags: Iterable[str] | EllipsisType = ...,
    ) -> SessionSummary:
        """Change what is given; the rest stays. None takes a title or a level away; ``tags`` replaces all tags.

        ``metadata`` is merged per key, nested mappings per nested key, so that what others store meanwhile
        stays; ``removed`` names keys, or paths as tuples, to take out first.
        """
        fields: dict[str, Any] = {}
        if title is not ...:
            fields["title"] = optional_text(title, "title")
        if automation_level is not ...:
            fields["automation_level"] = checked_level(automation_level)
        if tags is not ...:
            fields["tags"] = tag_list(tags)
        changes = {} if metadata is ... else json_object(metadata, "metadata")
        gone = tuple(removed)
        return self._repository.change(
            parse_ulid(session_id),
            self._now(),
            lambda old: replace(old, metadata=merged(old.metadata, changes, gone), **fields),
        )

    def link_plan(self, session_id: str, plan_id: str, phase: str | None = None, state: str | None = None) -> None:
        """Link a plan; linked again, it takes on the phase and state that are given."""
        plan = LinkedPlan(plan_id, phase, state)
        self._repository.change(
            parse_ulid(session_id),
            self._now(),
            lambda old: replace(old, linked_plans=with_plan(old.linked_plans, plan)),
        )

    # --- messages -------------------------------------------------------------------------------------

    def append(
        self,
        session_id: str,
        role: MessageRole | str,
        content: str | Sequence[Any] | None,
        *,
        tool_call_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tool_calls: Sequence[Mapping[str, Any]] | None = None,
        parts: Sequence[Any] | None = None,
        agent: str | None = None,
        expected_sequence: int | None = None,
    ) -> SessionMessage:
        """Add one message; see ``append_all``."""
        draft = message_draft(role, content, tool_call_id, metadata, tool_calls=tool_calls, parts=parts, agent=agent)
        return self.append_all(session_id, [draft], expected_sequence=expected_sequence)[0]

    def append_all(
        self, session_id: str, drafts: Iterable[MessageDraft], *, expected_sequence: int | None = None
    ) -> builtins.list[SessionMessage]:
        """Add messages next to each other, all or none, with the next sequence numbers.

        ``expected_sequence`` is the number that the first is expected to get: SessionConflictError when someone
        else wrote first.
        """
        known_id = parse_ulid(session_id)
        expected = None if expected_sequence is None else whole_number(expected_sequence, "expected_sequence")
        added = list(drafts)
        return self._repository.append(known_id, added, self._now(), expected)

    def messages(self, session_id: str, *, limit: int | None = None, offset: int = 0) -> builtins.list[SessionMessage]:
        """At most ``limit`` messages from the one at ``offset`` on, by sequence. Past the end there are none."""
        start = whole_number(offset, "offset")
        stop = _ALL if limit is None else start + whole_number(limit, "limit")
        return self._repository.messages(parse_ulid(session_id), start, stop)

    def last_messages(self, session_id: str, n: int) -> builtins.list[SessionMessage]:
        """The last ``n`` messages, oldest first."""
        return self._repository.last_messages(parse_ulid(session_id), whole_number(n, "n"))

    def count(self, session_id: str) -> int:
        """How many messages the session has."""
        return self._repository.count(parse_ulid(session_id))

    def turn(self, session_id: str, wait: float = TURN_WAIT) -> AbstractContextManager[None]:
        """Hold the session's turn while the block runs; one run at a time can.

        A second run waits up to ``wait`` seconds, then gets SessionBusyError. The turn ends with the process that
        holds it, however that ends.
        """
        known_id = parse_ulid(session_id)
        self._repository.count(known_id)
        return self._repository.turn(known_id, wait)

    # --- usage ----------------------------------------------------------------------------------------

    def add_usage(
        self,
        session_id: str,
        input_tokens: int,
        output_tokens: int,
        estimated_cost: float | None,
        *,
        llm: str | None = None,
    ) -> TokenUsage:
        """Enter what a turn used of one llm, and return the new totals. The cost is in dollars, None if unknown."""
        now = self._now()
        entry = UsageEntry(input_tokens, output_tokens, estimated_cost, llm, now)
        return self._repository.add_usage(parse_ulid(session_id), entry, now)

    # --- export and import ----------------------------------------------------------------------------

    def export(self, session_id: str) -> dict[str, Any]:
        """The session as a document that any program can read and verify."""
        return self.get(session_id).as_export_dict()

    def import_(self, document: Mapping[str, Any] | str | bytes) -> Session:
        """Store the session of an export document, or of its JSON text, as a new session with a new id.

        Where it came from is kept in ``metadata["imported_from"]``. Raises SessionImportError, and has stored
        nothing then.
        """
        read = read_document(document)
        original = session_of(read)
        origin = {
            "session_id": original.session_id,
            "checksum": read["checksum"],
            "forked_from": original.forked_from,
        }
        session = replace(
            original,
            session_id=new_ulid(),
            forked_from=None,
            metadata=original.metadata | {"imported_from": origin},
        )
        self._repository.add(session, imported_checksum=read["checksum"])
        return session
