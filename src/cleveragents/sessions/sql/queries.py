"""Every statement on the session database, in SQLAlchemy Core, and the file of their texts.

``statements.json`` holds what these compile to on both databases, so that no command waits for SQLAlchemy to be
imported (a quarter of a second); a test fails when the file is not what this module writes. After a change here:
``python -m cleveragents.sessions.sql.queries``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Select,
    Table,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal_column,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql.psycopg import dialect as postgresql
from sqlalchemy.dialects.sqlite.pysqlite import dialect as sqlite

from cleveragents.sessions.sql.tables import WHOLE, linked_plans, messages, session_tags, sessions, usage_entries

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect
    from sqlalchemy.sql import ClauseElement

_DAY = 86_400_000_000  # microseconds
_DAYS_BEFORE_1970 = 719_162

FILE = Path(__file__).with_name("statements.json")

# Constants are part of the text, so that a statement's parameters are what its caller gives.
ZERO, ONE = literal_column("0", WHOLE), literal_column("1", WHOLE)
_this_session = bindparam("session_id", type_=sessions.c.id.type)

SUMMARY = [
    sessions.c[name]
    for name in (
        "id",
        "namespace",
        "actor_name",
        "title",
        "automation_level",
        "message_count",
        "input_tokens",
        "output_tokens",
        "cost_nano",
        "cost_complete",
        "forked_from",
        "metadata",
        "created_at",
        "updated_at",
        "activity",
    )
]
MESSAGE = [
    messages.c[name]
    for name in (
        "sequence",
        "role",
        "content",
        "tool_call_id",
        "tool_calls",
        "parts",
        "agent",
        "metadata",
        "created_at",
    )
]
PLAN = [linked_plans.c.session_id, linked_plans.c.plan_id, linked_plans.c.phase, linked_plans.c.state]
TAG = [session_tags.c.session_id, session_tags.c.tag]
USAGE = [usage_entries.c[name] for name in ("input_tokens", "output_tokens", "cost_nano", "llm", "created_at")]


def _changed() -> dict[str, ColumnElement[int]]:
    """What each change of a session sets: its time, and its place before all others in lists."""
    now = bindparam("now", type_=WHOLE)
    others = sessions.alias("others")
    newest = select(func.coalesce(func.max(others.c.activity), ZERO)).scalar_subquery()
    return {
        "updated_at": case((sessions.c.updated_at > now, sessions.c.updated_at), else_=now),
        "activity": case((newest < now, now), else_=newest + ONE),
    }


def _named(*names: str) -> dict[str, ColumnElement[int]]:
    return {name: bindparam(f"new_{name}", type_=sessions.c[name].type) for name in names}


def _insert(table: Table) -> ClauseElement:
    """An insert of a whole row; the database numbers it where it has a number of its own."""
    return (
        insert(table)
        .inline()
        .values({column.name: bindparam(column.name) for column in table.c if column.name != "key"})
    )


def _page(*columns: ColumnElement[Any]) -> Select[Any]:
    """A page of the sessions after a place, newest activity first."""
    place = tuple_(bindparam("activity", type_=WHOLE), bindparam("after", type_=sessions.c.id.type))
    return (
        select(*columns)
        .where(tuple_(sessions.c.activity, sessions.c.id) < place, literal_column("{filters}"))
        .order_by(sessions.c.activity.desc(), sessions.c.id.desc())
        .limit(bindparam("limit", type_=BigInteger()))
        .offset(ZERO)
    )


def _of_page(columns: Sequence[Column[Any]]) -> Select[Any]:
    """What belongs to the sessions of a page; the first column is the session."""
    page = _page(sessions.c.id).subquery("page")
    table = columns[0].table
    return select(*columns).select_from(page.join(table, columns[0] == page.c.id))


def _day(time: Column[int]) -> ColumnElement[Any]:
    """The days before a time since the year 1: never negative, so that both databases round alike."""
    shifted = time + literal_column(str(_DAYS_BEFORE_1970 * _DAY), WHOLE)
    return shifted // literal_column(str(_DAY), WHOLE)


STATEMENTS: dict[str, ClauseElement] = {
    # Appending: the first takes the numbers and the write lock of the session, the second fills them.
    "take_numbers": (
        update(sessions)
        .where(sessions.c.id == _this_session)
        .values(message_count=sessions.c.message_count + bindparam("count", type_=WHOLE), **_changed())
        .returning(sessions.c.message_count)
    ),
    "add_message": _insert(messages),
    # Reading messages.
    "messages": (
        select(*MESSAGE)
        .where(
            messages.c.session_id == _this_session,
            messages.c.sequence >= bindparam("start", type_=WHOLE),
            messages.c.sequence < bindparam("stop", type_=WHOLE),
        )
        .order_by(messages.c.sequence)
    ),
    "last_messages": (
        select(*MESSAGE)
        .where(messages.c.session_id == _this_session)
        .order_by(messages.c.sequence.desc())
        .limit(bindparam("limit", type_=BigInteger()))
        .offset(ZERO)
    ),
    "count": select(sessions.c.message_count).where(sessions.c.id == _this_session),
    # One session.
    "summary": select(*SUMMARY).where(sessions.c.id == _this_session),
    "summary_for_change": select(*SUMMARY).where(sessions.c.id == _this_session).with_for_update(),
    "plans": select(*PLAN).where(linked_plans.c.session_id == _this_session).order_by(linked_plans.c.position),
    "tags": select(*TAG).where(session_tags.c.session_id == _this_session).order_by(session_tags.c.tag),
    "usage": (select(*USAGE).where(usage_entries.c.session_id == _this_session).order_by(usage_entries.c.key)),
    "change": (
        update(sessions)
        .where(sessions.c.id == _this_session)
        .values(
            **_named(
                "title", "automation_level", "metadata", "input_tokens", "output_tokens", "cost_nano", "cost_complete"
            ),
            **_changed(),
        )
        .returning(sessions.c.updated_at, sessions.c.activity)
    ),
    "delete": delete(sessions).where(sessions.c.id == _this_session).returning(sessions.c.id),
    "delete_plans": delete(linked_plans).where(linked_plans.c.session_id == _this_session),
    "delete_tags": delete(session_tags).where(session_tags.c.session_id == _this_session),
    # New rows.
    "newest_activity": select(func.coalesce(func.max(sessions.c.activity), ZERO)),
    "add_session": _insert(sessions),
    "add_plan": _insert(linked_plans),
    "add_tag": _insert(session_tags),
    "add_usage": _insert(usage_entries),
    # Lists. ``{filters}`` stands for conditions from FILTERS.
    "place": select(sessions.c.activity).where(sessions.c.id == _this_session),
    "page": _page(*SUMMARY),
    "page_plans": _of_page(PLAN).order_by(linked_plans.c.session_id, linked_plans.c.position),
    "page_tags": _of_page(TAG).order_by(session_tags.c.session_id, session_tags.c.tag),
    # Figures: each reads one table once, and none the messages.
    "started": (
        select(
            _day(sessions.c.created_at),
            sessions.c.actor_name,
            func.count(),
            func.sum(sessions.c.message_count),
        ).group_by(_day(sessions.c.created_at), sessions.c.actor_name)
    ),
    "used": (
        select(
            _day(usage_entries.c.created_at),
            sessions.c.actor_name,
            usage_entries.c.llm,
            func.count(),
            func.sum(usage_entries.c.input_tokens),
            func.sum(usage_entries.c.output_tokens),
            func.sum(usage_entries.c.cost_nano),
            func.count(usage_entries.c.cost_nano),
        )
        .select_from(usage_entries.join(sessions, sessions.c.id == usage_entries.c.session_id))
        .group_by(_day(usage_entries.c.created_at), sessions.c.actor_name, usage_entries.c.llm)
    ),
}

FILTERS: dict[str, ClauseElement] = {
    **{name: sessions.c[name] == bindparam(name) for name in ("actor_name", "namespace", "imported_checksum")},
    "id_prefix": and_(sessions.c.id >= bindparam("id_prefix"), sessions.c.id < bindparam("id_prefix_end")),
    # No session's ``activity`` is before its ``updated_at``, so the index says where to stop looking.
    "since": and_(sessions.c.activity >= bindparam("since"), sessions.c.updated_at >= bindparam("since")),
    "until": sessions.c.updated_at < bindparam("until"),
    "tag": sessions.c.id.in_(select(session_tags.c.session_id).where(session_tags.c.tag == bindparam("tag"))),
}


def compiled() -> dict[str, dict[str, str]]:
    """The text of every statement and filter by database, with named parameters in the style of its driver."""
    dialects: dict[str, Dialect] = {"sqlite": sqlite(paramstyle="named"), "postgresql": postgresql()}  # type: ignore[no-untyped-call] # SQLAlchemy has no types there
    named = STATEMENTS | {f"filter {name}": condition for name, condition in FILTERS.items()}
    return {
        database: {name: " ".join(str(element.compile(dialect=dialect)).split()) for name, element in named.items()}
        for database, dialect in dialects.items()
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(compiled(), indent=1) + "\n", encoding="utf-8")
