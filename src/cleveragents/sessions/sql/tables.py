"""The schema of the session database: its one definition, for both databases. Imported only where it is needed.

Times are whole microseconds since 1970, money is whole nano-dollars, JSON is text: what was stored comes back as
it was, on both databases, whatever their own types would make of it.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects import postgresql

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

WHOLE = BigInteger().with_variant(Integer(), "sqlite")
# Ordered by bytes everywhere, so that a page of a list ends at the same place on both databases.
NAME = Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def _session() -> Column[str]:
    return Column("session_id", NAME, ForeignKey("sessions.id", ondelete="CASCADE"), nullable=False)


sessions = Table(
    "sessions",
    metadata,
    Column("id", NAME, primary_key=True),
    Column("namespace", NAME, nullable=False),
    Column("actor_name", NAME),
    Column("title", Text),
    Column("automation_level", Text),
    Column("forked_from", NAME),
    # The checksum of the document that the session was imported from.
    Column("imported_checksum", NAME),
    Column("metadata", Text, nullable=False),
    Column("message_count", WHOLE, nullable=False),
    Column("input_tokens", WHOLE, nullable=False),
    Column("output_tokens", WHOLE, nullable=False),
    Column("cost_nano", WHOLE, nullable=False),
    Column("cost_complete", WHOLE, nullable=False),
    Column("created_at", WHOLE, nullable=False),
    Column("updated_at", WHOLE, nullable=False),
    # Grows with every change in the store: the order of lists, which clocks cannot disturb.
    Column("activity", WHOLE, nullable=False),
    # Raised when a turn begins: a turn that knows a smaller one has lost the session to another, and stores no more.
    Column("turn_number", WHOLE, nullable=False, server_default="0"),
    # The beginning of the user's first message, which a list shows of a session without a title.
    Column("first_words", Text),
    CheckConstraint("message_count >= 0", name="message_count"),
    CheckConstraint("input_tokens >= 0 AND output_tokens >= 0 AND cost_nano >= 0", name="usage"),
    CheckConstraint("cost_complete IN (0, 1)", name="cost_complete"),
    CheckConstraint("updated_at >= created_at", name="updated_at"),
    Index("ix_sessions_activity", "activity", "id"),
    Index("ix_sessions_actor", "actor_name", "activity", "id"),
    Index("ix_sessions_namespace", "namespace", "activity", "id"),
    Index("ix_sessions_imported", "imported_checksum"),
    sqlite_strict=True,
)

messages = Table(
    "messages",
    metadata,
    # SQLite numbers rows, and keeps the numbers, only in an integer primary key. A search index needs one; so
    # (session_id, sequence) is the unique constraint next to it.
    Column("key", WHOLE, Identity(), primary_key=True),
    _session(),
    Column("sequence", WHOLE, nullable=False),
    Column("role", Text, nullable=False),
    Column("content", Text),
    Column("tool_call_id", Text),
    Column("tool_calls", Text),
    Column("parts", Text),
    Column("agent", Text),
    # NULL for none: most messages have none, and reading skips the decoding.
    Column("metadata", Text),
    Column("created_at", WHOLE, nullable=False),
    UniqueConstraint("session_id", "sequence"),
    CheckConstraint("sequence >= 0", name="sequence"),
    CheckConstraint("role IN ('user', 'assistant', 'system', 'tool')", name="role"),
    CheckConstraint("content IS NOT NULL OR tool_calls IS NOT NULL", name="content"),
    sqlite_strict=True,
)

usage_entries = Table(
    "usage_entries",
    metadata,
    Column("key", WHOLE, Identity(), primary_key=True),
    _session(),
    Column("llm", Text),
    Column("input_tokens", WHOLE, nullable=False),
    Column("output_tokens", WHOLE, nullable=False),
    # NULL is an unknown cost.
    Column("cost_nano", WHOLE),
    Column("created_at", WHOLE, nullable=False),
    # Part of the tokens of input, and of those of output.
    Column("cached_tokens", WHOLE, nullable=False, server_default="0"),
    Column("reasoning_tokens", WHOLE, nullable=False, server_default="0"),
    Index("ix_usage_entries_session", "session_id", "key"),
    sqlite_strict=True,
)

linked_plans = Table(
    "linked_plans",
    metadata,
    _session(),
    Column("plan_id", NAME, nullable=False),
    Column("ordinal", WHOLE, nullable=False),
    Column("phase", Text),
    Column("state", Text),
    PrimaryKeyConstraint("session_id", "plan_id"),
    sqlite_strict=True,
)

session_tags = Table(
    "session_tags",
    metadata,
    _session(),
    Column("tag", NAME, nullable=False),
    PrimaryKeyConstraint("session_id", "tag"),
    Index("ix_session_tags_tag", "tag", "session_id"),
    sqlite_strict=True,
)
