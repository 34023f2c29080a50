"""Sessions for everybody who uses them: checked on the way in, durable when a call returns."""

from __future__ import annotations

import builtins
import datetime as dt
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from types import EllipsisType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from cleveragents.conversation.message import MessageDraft, MessageRole, SessionMessage
from cleveragents.conversation.reserved import CONFIG, CONFIG_DIGEST, IMPORTED_FROM, without_reserved
from cleveragents.conversation.usage import TokenUsage, UsageEntry
from cleveragents.disk.locks import TURN_WAIT
from cleveragents.errors import (
    SessionAmbiguousError,
    SessionDamagedError,
    SessionExportError,
    SessionImportError,
    SessionNotFoundError,
)
from cleveragents.sessions.config_file import ConfigFile
from cleveragents.sessions.document import read_document
from cleveragents.sessions.filter import SessionFilter
from cleveragents.sessions.linked_plan import LinkedPlan, with_plan
from cleveragents.sessions.session import (
    AutomationLevel,
    Session,
    SessionSummary,
    message_draft,
    tag_list,
)
from cleveragents.sessions.session import automation_level as checked_level
from cleveragents.sessions.statistics import Statistics, statistics
from cleveragents.sessions.store import SessionStore
from cleveragents.values.ids import is_ulid, new_ulid, parse_ulid, parse_ulid_prefix
from cleveragents.values.json import json_object, whole_number
from cleveragents.values.merge import Removal, merged
from cleveragents.values.text import optional_text
from cleveragents.values.times import utc_now

if TYPE_CHECKING:
    from cleveragents.sessions.received import Received

LAST = "last"
"""Means the session with the newest activity, where a person names one."""

_ALL = 2**63 - 1
_CANDIDATES = 5
_AT_ONCE = 50

_Kind = TypeVar("_Kind", Session, SessionSummary)


def _untold() -> None:
    """For those who don't want to be told."""


class SessionService:
    """Stored sessions. Use it as a context manager, or call ``close``; it may be shared by threads.

    Every call is one transaction, on disk when it returns. Ids may be in either case. Calls raise
    SessionNotFoundError for an unknown id, InvalidIdError for a malformed one, SessionValidationError and
    InvalidValueError for data that cannot be stored, and the other SessionServiceErrors when the database fails.
    """

    def __init__(self, store: SessionStore, now: Callable[[], dt.datetime] = utc_now) -> None:
        self._store = store
        self._now = now

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        self._store.close()

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
        self._store.add(session)
        return session

    def get(self, session_id: str) -> Session:
        """The whole session, with every message."""
        return self._store.get(parse_ulid(session_id))

    def summary(self, session_id: str) -> SessionSummary:
        """All but the messages and the ledger, at a cost that does not grow with them."""
        return self._store.summary(parse_ulid(session_id))

    def list(
        self,
        *,
        limit: int | None = None,
        after: str | SessionSummary | None = None,
        actor_name: str | None = None,
        namespace: str | None = None,
        tag: str | None = None,
        since: dt.datetime | None = None,
        until: dt.datetime | None = None,
        id_prefix: str | None = None,
        imported_checksum: str | None = None,
    ) -> builtins.list[SessionSummary]:
        """Sessions that match all that is given (see SessionFilter), newest activity first, ties by id.

        The next page begins ``after`` the last summary of this one, or after the id of a session.
        """
        return self._store.page(
            _ALL if limit is None else whole_number(limit, "limit"),
            parse_ulid(after) if isinstance(after, str) else after,
            SessionFilter(actor_name, namespace, tag, since, until, id_prefix, imported_checksum),
        )

    def find(self, reference: str) -> str:
        """The id of the session that a person means: a whole id, the beginning of one, or ``last``.

        ``last`` is the session with the newest activity. Raises InvalidIdError, SessionNotFoundError, and
        SessionAmbiguousError for what several ids begin with. A whole id is given back without being looked for.
        """
        if reference == LAST:
            newest = self.list(limit=1)
            if not newest:
                raise SessionNotFoundError("there is no session yet; 'cleveragents session create' makes one")
            return newest[0].session_id
        prefix = parse_ulid_prefix(reference)
        if is_ulid(prefix):
            return prefix
        found = self.list(limit=_CANDIDATES + 1, id_prefix=prefix)
        if not found:
            raise SessionNotFoundError(f"there is no session whose id begins with {prefix}")
        if len(found) > 1:
            named = ", ".join(summary.session_id for summary in found[:_CANDIDATES])
            more = " and others" if len(found) > _CANDIDATES else ""
            raise SessionAmbiguousError(
                f"several ids begin with {prefix}: {named}{more}; give more of the one you mean"
            )
        return found[0].session_id

    def newest(self, config: ConfigFile | None = None) -> SessionSummary:
        """The session with the newest activity that a run may go on with: no import that was never run here.

        With ``config``, one that was last run with that file. Raises SessionNotFoundError.
        """
        page = self.list(limit=_AT_ONCE)
        passed_over = 0
        while page:
            for summary in page:
                passed_over += summary.only_imported
                if not summary.only_imported and (config is None or config.is_remembered(summary.metadata)):
                    return summary
            page = self.list(limit=_AT_ONCE, after=page[-1])
        which = "there is no session yet" if config is None else f"no session was last run with {config.path}"
        imports = ", only what was imported and never run here" if passed_over and config is None else ""
        raise SessionNotFoundError(f"{which}{imports}; 'run --new-session' begins one")

    def statistics(self) -> Statistics:
        """Sums over all sessions, by day, actor and llm. Reads every session and ledger, and no message."""
        return statistics(self._store.counts())

    def delete(self, session_id: str) -> None:
        """Remove the session and everything that belongs to it, for good."""
        self._store.delete(parse_ulid(session_id))

    def update(
        self,
        session_id: str,
        *,
        title: str | EllipsisType | None = ...,
        metadata: Mapping[str, Any] | EllipsisType = ...,
        removed: Iterable[Removal] = (),
        automation_level: AutomationLevel | str | EllipsisType | None = ...,
        tags: Iterable[str] | EllipsisType = ...,
        add_tags: Iterable[str] = (),
        remove_tags: Iterable[str] = (),
    ) -> SessionSummary:
        """Change what is given; the rest stays. None takes a title or a level away.

        ``tags`` replaces all tags; then ``remove_tags`` are taken away and ``add_tags`` added.
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
        added, taken = tag_list(add_tags), tag_list(remove_tags)
        changes = {} if metadata is ... else json_object(metadata, "metadata")
        gone = tuple(removed)

        def edit(old: SessionSummary) -> SessionSummary:
            new = replace(old, metadata=merged(old.metadata, changes, gone), **fields)
            return replace(new, tags=tag_list([*(tag for tag in new.tags if tag not in taken), *added]))

        return self._store.change(
            parse_ulid(session_id),
            self._now(),
            edit,
        )

    def link_plan(self, session_id: str, plan_id: str, phase: str | None = None, state: str | None = None) -> None:
        """Link a plan; linked again, it takes on the phase and state that are given."""
        plan = LinkedPlan(plan_id, phase, state)
        self._store.change(
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
        return self._store.append(known_id, added, self._now(), expected)

    def messages(self, session_id: str, *, limit: int | None = None, offset: int = 0) -> builtins.list[SessionMessage]:
        """At most ``limit`` messages from the one at ``offset`` on, by sequence. Past the end there are none."""
        start = whole_number(offset, "offset")
        stop = _ALL if limit is None else start + whole_number(limit, "limit")
        return self._store.messages(parse_ulid(session_id), start, stop)

    def last_messages(self, session_id: str, n: int) -> builtins.list[SessionMessage]:
        """The last ``n`` messages, oldest first."""
        return self._store.last_messages(parse_ulid(session_id), whole_number(n, "n"))

    def count(self, session_id: str) -> int:
        """How many messages the session has."""
        return self._store.count(parse_ulid(session_id))

    def turn(
        self, session_id: str, wait: float = TURN_WAIT, *, cancelled: threading.Event | None = None
    ) -> AbstractContextManager[None]:
        """Hold the session's turn while the block runs; one run at a time can.

        A second run waits up to ``wait`` seconds, then gets SessionBusyError; setting ``cancelled`` from another
        thread ends the waiting at once, with the same error. The turn ends with the process that holds it,
        however that ends.
        """
        known_id = parse_ulid(session_id)
        self._store.count(known_id)
        return self._store.turn(known_id, wait, cancelled)

    # --- usage ----------------------------------------------------------------------------------------

    def add_usage(
        self,
        session_id: str,
        input_tokens: int,
        output_tokens: int,
        estimated_cost: float | None,
        *,
        llm: str | None = None,
        cached_tokens: int = 0,
        reasoning_tokens: int = 0,
    ) -> TokenUsage:
        """Enter what a turn used of one llm, and return the new totals. The cost is in dollars, None if unknown."""
        now = self._now()
        entry = UsageEntry(input_tokens, output_tokens, estimated_cost, llm, now, cached_tokens, reasoning_tokens)
        return self._store.add_usage(parse_ulid(session_id), entry, now)

    # --- export and import ----------------------------------------------------------------------------

    def export(self, session_id: str) -> dict[str, Any]:
        """The session as a document that any program can read and verify."""
        return self.get(session_id).as_export_dict()

    def export_pieces(self, session_id: str, *, written: Callable[[], object] = _untold) -> Iterator[bytes]:
        """The same document as the content of a file, in memory that does not grow with the session.

        ``written`` is told of each message. Others may go on with the session meanwhile.
        """
        from cleveragents.sessions.document_pieces import document_pieces

        with self._store.paged(parse_ulid(session_id)) as session:
            yield from document_pieces(session, written)

    def import_(self, document: Mapping[str, Any] | str | bytes) -> Session:
        """Store the session of an export document, or of its JSON text, as a new session with a new id.

        Where it came from is kept in ``metadata["imported_from"]``. Raises SessionImportError, and has stored
        nothing then.
        """
        if isinstance(document, str | bytes):
            from cleveragents.sessions.received import received

            text = document.encode("utf-8", "surrogatepass") if isinstance(document, str) else document
            with received([text]) as whole:
                return self.get(self.import_received(whole).session_id)
        read = read_document(document)
        original = Session.from_document(read)
        return self.adopt(original, _origin(original, read["checksum"]), read["checksum"])

    def import_received(self, document: Received) -> SessionSummary:
        """As ``import_``, of a document that is ``received``, in memory that does not grow with it."""
        original = document.session.summary
        summary = self._adopted(original, _origin(original, document.checksum))
        self._store.add_paged(replace(document.session, summary=summary), document.checksum)
        return summary

    def adopt(self, original: Session, origin: Mapping[str, Any], checksum: str) -> Session:
        """Store a copy of a session that was read elsewhere, whole, under a new id.

        ``origin`` is kept in ``metadata["imported_from"]``; ``list(imported_checksum=checksum)`` finds it again.
        """
        session = self._adopted(original, origin)
        self._store.add(session, imported_checksum=checksum)
        return session

    def _adopted(self, original: _Kind, origin: Mapping[str, Any]) -> _Kind:
        """The copy of ``original`` that is stored here.

        Nothing in it may choose what runs here, or how far that goes unasked: its configuration file is kept with its
        origin, and its automation level is not. Times in the future are now.
        """
        now = self._now()
        metadata, ran = without_reserved(original.metadata, [CONFIG, CONFIG_DIGEST])
        return replace(
            original,
            session_id=new_ulid(),
            automation_level=None,
            forked_from=None,
            metadata=metadata | {IMPORTED_FROM: {**origin, **ran}},
            created_at=min(original.created_at, now),
            updated_at=min(original.updated_at, now),
        )

    def verify(self, session_id: str) -> str:
        """Hold all that is stored of the session to the rules; the checksum of its export document.

        Raises SessionDamagedError.
        """
        from cleveragents.sessions.received import check_document

        try:
            return check_document(self.export_pieces(session_id))[1]
        except (SessionExportError, SessionImportError) as error:
            raise SessionDamagedError(f"session {session_id} is damaged: {error}") from error


def _origin(original: Session | SessionSummary, checksum: str) -> dict[str, Any]:
    return {"session_id": original.session_id, "checksum": checksum, "forked_from": original.forked_from}
