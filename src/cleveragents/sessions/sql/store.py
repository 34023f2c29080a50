"""The store of sessions in SQL: one code for SQLite and PostgreSQL."""

from __future__ import annotations

import datetime as dt
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields
from itertools import islice

from cleveragents.conversation.message import MessageDraft, SessionMessage
from cleveragents.conversation.usage import TokenUsage, UsageEntry
from cleveragents.errors import (
    InvalidInputError,
    SessionBusyError,
    SessionConflictError,
    SessionDamagedError,
    SessionNotFoundError,
)
from cleveragents.sessions.document_pieces import PagedSession
from cleveragents.sessions.filter import SessionFilter
from cleveragents.sessions.linked_plan import LinkedPlan
from cleveragents.sessions.session import Session, SessionSummary
from cleveragents.sessions.sql import rows
from cleveragents.sessions.sql.database import Database, Parameters, Rows, Transaction
from cleveragents.sessions.statistics import Count
from cleveragents.values.times import microseconds

LARGEST = 2**63 - 1
"""The largest integer of both databases."""

_PAGE = 100
"""Rows of a long session that are held at once: few, since a message may be long."""


class SqlSessionStore:
    """See sessions.store.SessionStore."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._turns: dict[str, int] = {}  # the numbers of those that are held here

    def add(self, session: Session, *, imported_checksum: str | None = None) -> None:
        with self._database.writing() as db:
            self._add(db, session, imported_checksum, session.messages, session.usage_entries)

    def add_paged(self, session: PagedSession, imported_checksum: str) -> None:
        with self._database.writing() as db:
            self._add(db, session.summary, imported_checksum, session.messages(), session.usage_entries())

    def _add(
        self,
        db: Transaction,
        session: Session | SessionSummary,
        imported_checksum: str | None,
        messages: Iterable[SessionMessage],
        usage_entries: Iterable[UsageEntry],
    ) -> None:
        sql = self._database.statements
        session_id = session.session_id
        activity = microseconds(session.updated_at)
        if imported_checksum is None:
            with self._whole():
                activity = max(activity, db.rows(sql["newest_activity"], {})[0]["activity"] + 1)
        db.rows(sql["add_session"], rows.session_row(session, imported_checksum, activity))
        words: list[str] = []

        def added() -> Iterator[Parameters]:
            for message in messages:
                if not words and (first := rows.words_of_user(message)):
                    words.append(first)
                yield rows.message_row(session_id, message.sequence, message, microseconds(message.created_at))

        _add_in_pages(db, sql["add_message"], added())
        if words:
            db.rows(sql["set_first_words"], {"session_id": session_id, "first_words": words[0]})
        _add_in_pages(db, sql["add_usage"], (rows.usage_row(session_id, entry) for entry in usage_entries))
        self._add_plans(db, session_id, session.linked_plans)
        self._add_tags(db, session_id, session.tags)

    @contextmanager
    def paged(self, session_id: str) -> Iterator[PagedSession]:
        with self._database.reading() as db:
            with self._readable(session_id):
                summary = self._summary(db, "summary", session_id)
            yield PagedSession(
                summary, lambda: self._message_pages(db, summary), lambda: self._usage_pages(db, session_id)
            )

    def _message_pages(self, db: Transaction, summary: SessionSummary) -> Iterator[SessionMessage]:
        """All messages, a page at a time; past the last page as well, where a damaged database may have some."""
        session_id, count = summary.session_id, summary.message_count
        for start in range(0, count + 1, _PAGE):
            stop = start + _PAGE if start + _PAGE <= count else LARGEST
            span = {"session_id": session_id, "start": start, "stop": stop}
            with self._readable(session_id):
                page = rows.read_messages(db.rows(self._database.statements["messages"], span))
                found = [message.sequence for message in page]
                if found != list(range(start, min(start + _PAGE, count))):
                    raise ValueError(f"of messages {start} to {min(start + _PAGE, count) - 1} some are missing")
            yield from page

    def _usage_pages(self, db: Transaction, session_id: str) -> Iterator[UsageEntry]:
        last = 0
        while True:
            after = {"session_id": session_id, "after": last, "limit": _PAGE}
            found = db.rows(self._database.statements["usage_page"], after)
            with self._readable(session_id):
                page = [rows.read_usage(row) for row in found]
            yield from page
            if len(found) < _PAGE:
                return
            last = found[-1]["key"]

    def get(self, session_id: str) -> Session:
        sql = self._database.statements
        with self._database.reading() as db, self._readable(session_id):
            summary = self._summary(db, "summary", session_id)
            stored = {"session_id": session_id, "start": 0, "stop": LARGEST}
            messages = rows.read_messages(db.rows(sql["messages"], stored))
            if len(messages) != summary.message_count:
                raise ValueError(f"{summary.message_count} messages were stored, {len(messages)} are there")
            return Session(
                session_id,
                summary.namespace,
                summary.actor_name,
                summary.title,
                summary.automation_level,
                messages,
                summary.token_usage,
                summary.linked_plans,
                summary.tags,
                summary.forked_from,
                summary.metadata,
                summary.created_at,
                summary.updated_at,
                [rows.read_usage(row) for row in db.rows(sql["usage"], {"session_id": session_id})],
            )

    def summary(self, session_id: str) -> SessionSummary:
        with self._database.reading() as db, self._readable(session_id):
            return self._summary(db, "summary", session_id)

    def page(self, limit: int, after: str | SessionSummary | None, wanted: SessionFilter) -> list[SessionSummary]:
        sql = self._database.statements
        conditions = {each.name: getattr(wanted, each.name) for each in fields(wanted)}
        given = {name: rows.filter_values(name, value) for name, value in conditions.items() if value is not None}
        filters = "\n".join(sql[f"filter {name}"] for name in given)
        with self._database.reading() as db:
            with self._whole():
                activity, last_id = self._place(db, after)
            parameters = {"limit": min(limit, LARGEST), "activity": activity, "after": last_id}
            for values in given.values():
                parameters |= values
            found, plans, tags = (
                db.rows(sql[name].replace("{filters}", filters), parameters)
                for name in ("page", "page_plans", "page_tags")
            )
            plans_of: defaultdict[str, list[LinkedPlan]] = defaultdict(list)
            for row in plans:
                with self._readable(row["session_id"]):
                    plans_of[row["session_id"]].append(rows.read_plan(row))
            tags_of: defaultdict[str, list[str]] = defaultdict(list)
            for row in tags:
                tags_of[row["session_id"]].append(row["tag"])
            return [self._read_summary(row, plans_of[row["id"]], tags_of[row["id"]]) for row in found]

    def _place(self, db: Transaction, after: str | SessionSummary | None) -> tuple[int, str]:
        if after is None:
            return LARGEST, ""
        if isinstance(after, SessionSummary):
            return after.activity, after.session_id
        found = db.rows(self._database.statements["place"], {"session_id": after})
        if not found:
            raise _not_found(after)
        return found[0]["activity"], after

    def counts(self) -> list[Count]:
        sql = self._database.statements
        with self._database.reading() as db, self._whole():
            return [
                *map(rows.read_started, db.rows(sql["started"], {})),
                *map(rows.read_used, db.rows(sql["used"], {})),
            ]

    def delete(self, session_id: str) -> None:
        with self._database.writing() as db:
            if not db.rows(self._database.statements["delete"], {"session_id": session_id}):
                raise _not_found(session_id)
        self._database.forget_turn(session_id)

    def append(
        self, session_id: str, drafts: Sequence[MessageDraft], now: dt.datetime, expected_sequence: int | None
    ) -> list[SessionMessage]:
        sql = self._database.statements
        time = microseconds(now)
        with self._database.writing() as db:
            words = next(filter(None, map(rows.words_of_user, drafts)), None)
            wanted = {"session_id": session_id, "count": len(drafts), "now": time, "first_words": words}
            taken = db.rows(sql["take_numbers"], wanted | {"turn_number": self._turns.get(session_id, 0)})
            if not taken:
                raise self._lost_turn(db, session_id)
            with self._readable(session_id):
                first = rows.whole_number(taken[0]["message_count"]) - len(drafts)
            if expected_sequence is not None and expected_sequence != first:
                raise SessionConflictError(
                    f"session {session_id} was changed meanwhile: message {expected_sequence} was expected to be the "
                    f"next, but it is {first}; read the session again"
                )
            added = [rows.message_row(session_id, first + index, draft, time) for index, draft in enumerate(drafts)]
            if len(added) == 1:
                db.rows(sql["add_message"], added[0])
            else:
                db.many(sql["add_message"], added)
        return [draft.numbered(first + index, now) for index, draft in enumerate(drafts)]

    def messages(self, session_id: str, start: int, stop: int) -> list[SessionMessage]:
        span = {"session_id": session_id, "start": min(start, LARGEST), "stop": min(stop, LARGEST)}
        return self._messages(session_id, self._database.query(self._database.statements["messages"], span))

    def last_messages(self, session_id: str, count: int) -> list[SessionMessage]:
        wanted = {"session_id": session_id, "limit": min(count, LARGEST)}
        found = self._database.query(self._database.statements["last_messages"], wanted)
        return self._messages(session_id, found)[::-1]

    def _messages(self, session_id: str, found: Rows) -> list[SessionMessage]:
        if not found:
            self.count(session_id)
        with self._readable(session_id):
            return rows.read_messages(found)

    def count(self, session_id: str) -> int:
        found = self._database.query(self._database.statements["count"], {"session_id": session_id})
        if not found:
            raise _not_found(session_id)
        with self._readable(session_id):
            return rows.whole_number(found[0]["message_count"])

    def change(
        self, session_id: str, now: dt.datetime, edit: Callable[[SessionSummary], SessionSummary]
    ) -> SessionSummary:
        sql = self._database.statements
        with self._database.writing() as db:
            with self._readable(session_id):
                old = self._summary(db, "summary_for_change", session_id)
            new = edit(old)
            self._store_change(db, new, now)
            if new.linked_plans != old.linked_plans:
                db.rows(sql["delete_plans"], {"session_id": session_id})
                self._add_plans(db, session_id, new.linked_plans)
            if new.tags != old.tags:
                db.rows(sql["delete_tags"], {"session_id": session_id})
                self._add_tags(db, session_id, new.tags)
            return self._summary(db, "summary", session_id)

    def add_usage(self, session_id: str, entry: UsageEntry, now: dt.datetime) -> TokenUsage:
        with self._database.writing() as db:
            with self._readable(session_id):
                old = self._summary(db, "summary_for_change", session_id)
            new = old.with_usage(entry)
            db.rows(self._database.statements["add_usage"], rows.usage_row(session_id, entry))
            self._store_change(db, new, now)
        return new.token_usage

    @contextmanager
    def turn(self, session_id: str, wait: float, cancelled: threading.Event | None) -> Iterator[None]:
        with self._database.turn(session_id, wait, cancelled):
            with self._database.writing() as db:
                begun = db.rows(self._database.statements["begin_turn"], {"session_id": session_id})
                if not begun:
                    raise _not_found(session_id)
            number = self._turns[session_id] = begun[0]["turn_number"]
            try:
                yield
            finally:
                # Where this turn lost its lock, a later one of this process may have its own number here by now.
                if self._turns.get(session_id) == number:
                    del self._turns[session_id]

    def _lost_turn(self, db: Transaction, session_id: str) -> SessionBusyError | SessionNotFoundError:
        """Why the session hands out no numbers: it is gone, or another turn has begun since ours did."""
        if not db.rows(self._database.statements["count"], {"session_id": session_id}):
            return _not_found(session_id)
        return SessionBusyError(
            f"session {session_id} was taken over by another run, after this one lost its lock; no more messages of it "
            "are stored"
        )

    def close(self) -> None:
        self._database.close()

    def _summary(self, db: Transaction, statement: str, session_id: str) -> SessionSummary:
        sql, key = self._database.statements, {"session_id": session_id}
        found = db.rows(sql[statement], key)
        if not found:
            raise _not_found(session_id)
        plans = [rows.read_plan(row) for row in db.rows(sql["plans"], key)]
        tags = [row["tag"] for row in db.rows(sql["tags"], key)]
        return rows.read_summary(found[0], plans, tags)

    def _read_summary(self, row: rows.Row, plans: Sequence[LinkedPlan], tags: Sequence[str]) -> SessionSummary:
        with self._readable(row["id"]):
            return rows.read_summary(row, plans, tags)

    def _store_change(self, db: Transaction, new: SessionSummary, now: dt.datetime) -> None:
        change = {"session_id": new.session_id, "now": microseconds(now), **rows.changeable(new)}
        db.rows(self._database.statements["change"], change)

    def _add_plans(self, db: Transaction, session_id: str, plans: Sequence[LinkedPlan]) -> None:
        added = [rows.plan_row(session_id, position, plan) for position, plan in enumerate(plans)]
        db.many(self._database.statements["add_plan"], added)

    def _add_tags(self, db: Transaction, session_id: str, tags: Sequence[str]) -> None:
        db.many(self._database.statements["add_tag"], [{"session_id": session_id, "tag": tag} for tag in tags])

    def _readable(self, session_id: str) -> AbstractContextManager[None]:
        """What the domain refuses when it is read was damaged, or written by another program."""
        return _damage(f"session {session_id} in {self._database.name}")

    def _whole(self) -> AbstractContextManager[None]:
        """The same, of what is no single session's."""
        return _damage(f"the database {self._database.name}")


@contextmanager
def _damage(where: str) -> Iterator[None]:
    try:
        yield
    except (InvalidInputError, AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise SessionDamagedError(f"{where} is damaged: {error}; nothing was changed") from error


def _add_in_pages(db: Transaction, sql: str, added: Iterator[Parameters]) -> None:
    while page := list(islice(added, _PAGE)):
        db.many(sql, page)


def _not_found(session_id: str) -> SessionNotFoundError:
    return SessionNotFoundError(f"there is no session {session_id}")
