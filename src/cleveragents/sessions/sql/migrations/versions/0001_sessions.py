"""Sessions, their messages, ledgers, plans and tags. Never changed once released: later schemas are new files."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAME = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")


def _session(table: str) -> tuple[sa.Column[str], sa.ForeignKeyConstraint]:
    return (
        sa.Column("session_id", NAME, nullable=False),
        sa.ForeignKeyConstraint(["session_id"], ["sessions.id"], f"fk_{table}_session_id", ondelete="CASCADE"),
    )


def upgrade() -> None:
    """Create the five tables."""
    op.create_table(
        "sessions",
        sa.Column("id", NAME, nullable=False),
        sa.Column("namespace", NAME, nullable=False),
        sa.Column("actor_name", NAME),
        sa.Column("title", sa.Text()),
        sa.Column("automation_level", sa.Text()),
        sa.Column("forked_from", NAME),
        sa.Column("imported_checksum", NAME),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("message_count", WHOLE, nullable=False),
        sa.Column("input_tokens", WHOLE, nullable=False),
        sa.Column("output_tokens", WHOLE, nullable=False),
        sa.Column("cost_nano", WHOLE, nullable=False),
        sa.Column("cost_complete", WHOLE, nullable=False),
        sa.Column("created_at", WHOLE, nullable=False),
        sa.Column("updated_at", WHOLE, nullable=False),
        sa.Column("activity", WHOLE, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.CheckConstraint("message_count >= 0", name="ck_sessions_message_count"),
        sa.CheckConstraint("input_tokens >= 0 AND output_tokens >= 0 AND cost_nano >= 0", name="ck_sessions_usage"),
        sa.CheckConstraint("cost_complete IN (0, 1)", name="ck_sessions_cost_complete"),
        sa.CheckConstraint("updated_at >= created_at", name="ck_sessions_updated_at"),
        sqlite_strict=True,
    )
    op.create_index("ix_sessions_activity", "sessions", ["activity", "id"])
    op.create_index("ix_sessions_actor", "sessions", ["actor_name", "activity", "id"])
    op.create_index("ix_sessions_namespace", "sessions", ["namespace", "activity", "id"])
    op.create_index("ix_sessions_imported", "sessions", ["imported_checksum"])
    op.create_table(
        "messages",
        sa.Column("key", WHOLE, sa.Identity(), nullable=False),
        *_session("messages"),
        sa.Column("sequence", WHOLE, nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("content", sa.Text()),
        sa.Column("tool_call_id", sa.Text()),
        sa.Column("tool_calls", sa.Text()),
        sa.Column("parts", sa.Text()),
        sa.Column("agent", sa.Text()),
        sa.Column("metadata", sa.Text()),
        sa.Column("created_at", WHOLE, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_messages"),
        sa.UniqueConstraint("session_id", "sequence", name="uq_messages_session_id_sequence"),
        sa.CheckConstraint("sequence >= 0", name="ck_messages_sequence"),
        sa.CheckConstraint("role IN ('user', 'assistant', 'system', 'tool')", name="ck_messages_role"),
        sa.CheckConstraint("content IS NOT NULL OR tool_calls IS NOT NULL", name="ck_messages_content"),
        sqlite_strict=True,
    )
    op.create_table(
        "usage_entries",
        sa.Column("key", WHOLE, sa.Identity(), nullable=False),
        *_session("usage_entries"),
        sa.Column("llm", sa.Text()),
        sa.Column("input_tokens", WHOLE, nullable=False),
        sa.Column("output_tokens", WHOLE, nullable=False),
        sa.Column("cost_nano", WHOLE),
        sa.Column("created_at", WHOLE, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_usage_entries"),
        sqlite_strict=True,
    )
    op.create_index("ix_usage_entries_session", "usage_entries", ["session_id", "key"])
    op.create_table(
        "linked_plans",
        *_session("linked_plans"),
        sa.Column("plan_id", NAME, nullable=False),
        sa.Column("position", WHOLE, nullable=False),
        sa.Column("phase", sa.Text()),
        sa.Column("state", sa.Text()),
        sa.PrimaryKeyConstraint("session_id", "plan_id", name="pk_linked_plans"),
        sqlite_strict=True,
    )
    op.create_table(
        "session_tags",
        *_session("session_tags"),
        sa.Column("tag", NAME, nullable=False),
        sa.PrimaryKeyConstraint("session_id", "tag", name="pk_session_tags"),
        sqlite_strict=True,
    )
    op.create_index("ix_session_tags_tag", "session_tags", ["tag", "session_id"])
