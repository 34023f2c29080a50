"""Creating and upgrading the schema with Alembic, which is imported only when there is something to do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleveragents.errors import SessionDamagedError, SessionSchemaError

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema that this release works with: Alembic's scripts that lead there, and the revision they end at.

    Revisions are numbers with leading zeros, so that an older schema can be told from a newer one.
    """

    scripts: Path
    head: str

    def is_current(self, revision: str | None, database: str) -> bool:
        """Whether ``revision`` is the one we work with: False when it is older, or none is recorded.

        Raises SessionSchemaError when it is newer or not ours, SessionDamagedError when it is no text at all;
        ``database`` names the database in the text.
        """
        if not isinstance(revision, str | None):
            raise SessionDamagedError(f"{database} is damaged: its schema is recorded as {revision!r:.40}")
        if revision == self.head or revision is None:
            return revision is not None
        if revision > self.head:
            raise SessionSchemaError(
                f"{database} has schema {revision}, made by a newer version of cleveragents; this one knows schemas "
                f"up to {self.head}: upgrade cleveragents"
            )
        return False


CURRENT = Schema(Path(__file__).with_name("migrations"), "0004")
FIRST = "0001"
VERSION_TABLE = "cleveragents_version"
OLD_VERSION_TABLE = "alembic_version"
"""Where releases up to schema 0002 recorded theirs. Other programs keep their own revisions in a table of this name."""
_OLD_REVISIONS = {"0001", "0002"}
# What tells tables of the first schema from another program's of the same names.
_FIRST_TABLES = {
    "sessions": {"id", "actor_name", "message_count", "cost_nano", "activity"},
    "messages": {"key", "session_id", "sequence", "tool_calls"},
    "usage_entries": {"key", "session_id", "cost_nano"},
    "linked_plans": {"session_id", "plan_id", "position"},
    "session_tags": {"session_id", "tag"},
}

TABLES = tuple(_FIRST_TABLES)
"""The names of our tables, but for the one that records the schema."""


def recorded_revision(found: Sequence[Any], database: str) -> str:
    """The revision among ``found``, all that our version table holds. SessionDamagedError when it is none of ours."""
    if len(found) == 1 and isinstance(found[0], str) and re.fullmatch("[0-9]{4}", found[0]):
        return found[0]
    raise SessionDamagedError(
        f"{database} is damaged: its table {VERSION_TABLE} does not hold one schema number; restore a backup"
    )


def old_revision(found: Sequence[Any], database: str) -> str:
    """The revision among ``found``, all that the old version table holds beside our tables.

    Raises SessionSchemaError when it is another program's.
    """
    if len(found) == 1 and found[0] in _OLD_REVISIONS:
        return str(found[0])
    raise SessionSchemaError(
        f"{database} has a table {OLD_VERSION_TABLE} of another program, so the schema of our tables is not known; "
        "choose another database with CLEVERAGENTS_DATABASE_URL"
    )


def engine_on(connection: Any, driver: Any, dialect: str) -> Engine:
    """SQLAlchemy's engine on one open driver connection, ready before a transaction begins on that.

    What an engine asks at its first use it does in a transaction of its own, which it rolls back.
    """
    from sqlalchemy import create_engine
    from sqlalchemy.pool import StaticPool

    engine = create_engine(f"{dialect}://", creator=lambda: connection, module=driver, poolclass=StaticPool)
    engine.connect().close()
    return engine


def upgrade(engine: Engine, schema: Schema, database: str, revision: str | None) -> None:
    """Bring a database to ``schema`` inside the transaction that the connection of ``engine_on`` is in by now.

    ``revision`` is the recorded one. Commits at the end; on any error everything is as it was. Tables
    of the first schema without a recorded revision are taken for it; other tables of the same names raise
    SessionSchemaError.
    """
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import inspect, text
    from sqlalchemy.exc import DBAPIError

    config = Config()
    config.set_main_option("path_separator", "newline")
    config.set_main_option("script_location", str(schema.scripts).replace("%", "%%"))
    try:
        with engine.connect() as sql:
            config.attributes.update(connection=sql, version_table=VERSION_TABLE)
            tables = set(inspect(sql).get_table_names())
            if VERSION_TABLE not in tables and _has_first_tables(sql, tables, database):
                command.stamp(config, revision or FIRST)
                if revision is not None:
                    sql.execute(text(f"DROP TABLE {OLD_VERSION_TABLE}"))
            command.upgrade(config, schema.head)
            sql.commit()
    except DBAPIError as error:
        # The driver's own error, which the caller knows how to tell.
        raise (error.orig or error) from error


def _has_first_tables(sql: Connection, names: set[str], database: str) -> bool:
    """Whether there are tables of the first schema among ``names``, all that there are."""
    from sqlalchemy import inspect

    inspector = inspect(sql)
    if not names & _FIRST_TABLES.keys():
        return False
    for table, columns in _FIRST_TABLES.items():
        found = {column["name"] for column in inspector.get_columns(table)} if table in names else set()
        if not columns <= found:
            raise SessionSchemaError(
                f"{database} has a table {table} that is not ours; choose another database with "
                "CLEVERAGENTS_DATABASE_URL"
            )
    return True
