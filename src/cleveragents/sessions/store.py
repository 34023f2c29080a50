"""What the service asks of a store of sessions. One suite of tests holds every store to it."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from cleveragents.conversation.message import MessageDraft, SessionMessage
from cleveragents.conversation.usage import TokenUsage, UsageEntry
from cleveragents.sessions.document_pieces import PagedSession
from cleveragents.sessions.filter import SessionFilter
from cleveragents.sessions.session import Session, SessionSummary
from cleveragents.sessions.statistics import Count


class SessionStore(Protocol):
    """A durable store of sessions that many processes and threads share.

    Each method is one transaction: on disk when it returns, and as if it had never been called when it raises.
    Values come in their stored form, checked by the domain. Any method raises SessionNotFoundError for an id of
    which there is no session, and, when the database fails, SessionBusyError (others held it too long),
    SessionStorageError, SessionDamagedError or SessionSchemaError.
    """

    def add(self, session: Session, *, imported_checksum: str | None = None) -> None:
        """Store a new session with all it has. Cost: a row for each message.

        It becomes the first of all lists; one that was imported, with the checksum of its document, takes the
        place that its ``updated_at`` gives it.
        """

    def add_paged(self, session: PagedSession, imported_checksum: str) -> None:
        """Store a new session as ``add`` does one that was imported. Memory: independent of its length."""

    def paged(self, session_id: str) -> AbstractContextManager[PagedSession]:
        """The session as it was at one moment, to be read while the block lasts.

        Reading it raises SessionDamagedError. Memory: independent of its length.
        """

    def get(self, session_id: str) -> Session:
        """The whole session as it was at one moment. Cost: grows with its messages."""

    def summary(self, session_id: str) -> SessionSummary:
        """All but messages and ledger. Cost: independent of the number of messages."""

    def page(self, limit: int, after: str | SessionSummary | None, wanted: SessionFilter) -> list[SessionSummary]:
        """At most ``limit`` sessions that match ``wanted``, newest activity first, ties by id.

        They begin after the session ``after``: where a summary stood when it was read, or where the session of an
        id stands now. Cost: grows with the length of the page, for ``until`` also with the number of sessions that
        changed later, and touches no message.
        """

    def counts(self) -> list[Count]:
        """What was begun and used, by day, actor and llm. Cost: all sessions and ledgers, and no message."""

    def delete(self, session_id: str) -> None:
        """Remove the session and all that belongs to it. Cost: grows with its messages."""

    def append(
        self, session_id: str, drafts: Sequence[MessageDraft], now: dt.datetime, expected_sequence: int | None
    ) -> list[SessionMessage]:
        """Add messages with the next numbers, next to each other, whoever else appends.

        Raises SessionConflictError when the first would not get ``expected_sequence``. Cost: independent of what
        the session holds.
        """

    def messages(self, session_id: str, start: int, stop: int) -> list[SessionMessage]:
        """The messages numbered from ``start`` to before ``stop``. Cost: grows with their number only."""

    def last_messages(self, session_id: str, count: int) -> list[SessionMessage]:
        """The last ``count`` messages, oldest first. Cost: grows with their number only."""

    def count(self, session_id: str) -> int:
        """How many messages there are. Cost: one row."""

    def change(
        self, session_id: str, now: dt.datetime, edit: Callable[[SessionSummary], SessionSummary]
    ) -> SessionSummary:
        """Replace title, level, metadata, plans and tags by those that ``edit`` makes of the present ones.

        No other change comes between. ``edit`` may raise; it must be quick and touch no store.
        """

    def add_usage(self, session_id: str, entry: UsageEntry, now: dt.datetime) -> TokenUsage:
        """Enter a use in the ledger and return the new totals, by TokenUsage.plus. Cost: a few rows."""

    def turn(self, session_id: str, wait: float, cancelled: threading.Event | None) -> AbstractContextManager[None]:
        """Hold the turn lock of the session, which ends with the process.

        Raises SessionBusyError after ``wait`` seconds, or as soon as another thread sets ``cancelled``: whoever
        gives up waiting for a thread that waits here ends it so.
        """

    def close(self) -> None:
        """Let go of the database. The store may be used again, and opens it again then."""
