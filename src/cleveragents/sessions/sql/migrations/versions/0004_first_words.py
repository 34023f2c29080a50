"""More tokens in the ledger, and the user's first words, by which a list tells sessions without a title apart."""

import re
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

AT_ONCE = 500
"""How many sessions are in memory."""

LONGEST = 80
READ = 400
"""Characters of a message from which its first words are taken."""

WHOLE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

sessions = sa.table("sessions", sa.column("id", sa.Text), sa.column("first_words", sa.Text))


def upgrade() -> None:
    """Add the column, and fill it."""
    for column in ("cached_tokens", "reasoning_tokens"):
        op.add_column("usage_entries", sa.Column(column, WHOLE, nullable=False, server_default="0"))
    op.add_column("sessions", sa.Column("first_words", sa.Text()))
    connection = op.get_bind()
    change = sa.update(sessions).where(sessions.c.id == sa.bindparam("row")).values(first_words=sa.bindparam("new"))
    last = ""
    while page := connection.execute(sa.text(FIRST_OF_USER), {"last": last, "limit": AT_ONCE}).fetchall():
        words = [{"row": row.id, "new": _first_words(row.content)} for row in page if row.content]
        if words:
            connection.execute(change, words)
        last = page[-1].id


FIRST_OF_USER = f"""
SELECT sessions.id, (
    SELECT substr(messages.content, 1, {READ}) FROM messages
    WHERE messages.session_id = sessions.id AND messages.role = 'user' AND messages.content IS NOT NULL
    ORDER BY messages.sequence LIMIT 1
) AS content
FROM sessions WHERE sessions.id > :last ORDER BY sessions.id LIMIT :limit
"""  # noqa: S608 - a number of ours


def _first_words(content: Any) -> str | None:
    """The beginning of a stored text in one line. What stands for NUL in it is left out."""
    text = " ".join(re.sub("\x10.", " ", str(content), flags=re.DOTALL).replace("\x10", " ").split())
    return (text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…") or None
