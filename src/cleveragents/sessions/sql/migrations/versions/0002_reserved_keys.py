"""Our own keys in metadata move under one key, so that those of users cannot collide with them. No table changes.

The rules stand here a second time: a migration does what it did when it was released, whatever becomes of the rest.
"""

import json
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

RESERVED = "cleveragents"
NOTHING = "[nothing]"
OF_SESSION = {"config": str, "global_context": dict, "context_state": dict, "context_metadata": dict}

AT_ONCE = 1000
"""How many rows are in memory."""

sessions = sa.table("sessions", sa.column("id", sa.Text), sa.column("metadata", sa.Text))
messages = sa.table(
    "messages",
    sa.column("key", sa.BigInteger),
    sa.column("role", sa.Text),
    sa.column("content", sa.Text),
    sa.column("metadata", sa.Text),
)


def upgrade() -> None:
    """Move the keys; rows that have none are not touched."""
    _move(
        sessions,
        sa.select(sessions.c.id, sessions.c.metadata).where(
            sa.or_(*(_may_have(sessions, name) for name in OF_SESSION))
        ),
        lambda _, metadata: [name for name, kind in OF_SESSION.items() if isinstance(metadata.get(name), kind)],
    )
    failed = sa.and_(messages.c.role == "tool", _may_have(messages, "failed"))
    no_text = sa.or_(messages.c.content == NOTHING, messages.c.content.is_(None))
    blank = sa.and_(no_text, _may_have(messages, "blank_content"))
    columns = (messages.c.key, messages.c.metadata, messages.c.role, messages.c.content)
    _move(messages, sa.select(*columns).where(sa.or_(failed, blank)), _of_message)


def _of_message(row: Any, metadata: dict[str, Any]) -> list[str]:
    names = ["failed"] if row.role == "tool" and metadata.get("failed") is True else []
    if row.content in {None, NOTHING} and "blank_content" in metadata and _is_blank(metadata["blank_content"]):
        names.append("blank_content")
    return names


def _is_blank(content: Any) -> bool:
    """Whether there is nothing to read in the content of a message: text, or a list of parts."""
    parts = content if isinstance(content, list) else [content or ""]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return all(isinstance(text, str) and not text.strip() for text in texts)


def _may_have(table: sa.TableClause, name: str) -> sa.ColumnElement[bool]:
    return table.c.metadata.contains(f'"{name}"', autoescape=True)


def _move(table: sa.TableClause, rows: sa.Select[Any], names: Callable[[Any, dict[str, Any]], list[str]]) -> None:
    """Put what ``names`` gives of the metadata of each of ``rows`` under the reserved key."""
    connection = op.get_bind()
    key = rows.selected_columns[0]
    change = sa.update(table).where(table.c[key.name] == sa.bindparam("row")).values(metadata=sa.bindparam("new"))
    rows = rows.order_by(key).limit(AT_ONCE)
    page = connection.execute(rows).fetchall()
    while page:
        changed = []
        for row in page:
            new = _moved(row, names)
            if new is not None:
                changed.append({"row": row[0], "new": json.dumps(new, ensure_ascii=False, separators=(",", ":"))})
        if changed:
            connection.execute(change, changed)
        page = connection.execute(rows.where(key > page[-1][0])).fetchall()


def _moved(row: Any, names: Callable[[Any, dict[str, Any]], list[str]]) -> dict[str, Any] | None:
    """The new metadata of ``row``; None where it stays, as does what cannot be read: ``verify`` tells of that."""
    try:
        metadata = json.loads(row.metadata)
    except ValueError:
        return None
    if not isinstance(metadata, dict) or not isinstance(metadata.get(RESERVED, {}), dict):
        return None
    moved = names(row, metadata)
    rest = {name: value for name, value in metadata.items() if name not in moved}
    ours = metadata.get(RESERVED, {}) | {name: metadata[name] for name in moved}
    origin = metadata.get("imported_from")
    if "config" in moved and isinstance(origin, dict):
        # Nobody can tell whether a run here or a stranger's document named the file, and it would be run.
        rest["imported_from"] = origin | {"config": ours.pop("config")}
    return rest | ({RESERVED: ours} if ours else {}) if moved else None
