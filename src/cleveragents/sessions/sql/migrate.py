"""Creating and upgrading the schema with Alembic, which is imported only when there is something to do."""

from __future__ import annotations

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
        if not revision.isdecimal():
            raise SessionSchemaError(f"{database} has tables of another program (revision {revision!r:.40})")
        if revision > self.head:
            raise SessionSchemaError(
                f"{database} has schema {revision}, made by a newer version of cleveragents; this one knows schemas "
                f"up to {self.head}: upgrade cleveragents"
            )
        return False


CURRENT = Schema(Path(__file__).with_name("migrations"), "0002")
FIRST = "0001"
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


def engine_on(connection: Any, driver: Any, dialect: str) -> Engine:
    """SQLAlchemy's engine on one open driver connection, ready before a transaction begins on that.

    What an engine asks at its first use it does in a transaction of its own, which it rolls back.
    """
    from sqlalchemy import create_engine
    from sqlalchemy.pool import StaticPool

    engine = create_engine(f"{dialect}://", creator=lambda: connection, module=driver, poolclass=StaticPool)
    engine.connect().close()
    return engine


def upgrade(engine: Engine, schema: Schema, database: str) -> None:
    """Bring a database to ``schema`` inside the transaction that the connection of ``engine_on`` is in by now.

    Commits at the end; on any error everything is as it was. Tables of the first schema without a recorded
    revision are taken for it; other tables of the same names raise SessionSchemaError.
    """
    from alembic import command
    from alembic.config import Config
    from sqlalchemy.exc import DBAPIError

    config = Config()
    config.set_main_option("path_separator", "newline")
    config.set_main_option("script_location", str(schema.scripts).replace("%", "%%"))
    try:
        with engine.connect() as sql:
            config.attributes["connection"] = sql
            if _is_unrecorded(sql, database):
                command.stamp(config, FIRST)
            command.upgrade(config, schema.head)
            sql.commit()
    except DBAPIError as error:
        # The driver's own error, which the caller knows how to tell.
        raise (error.orig or error) from error


def _is_unrecorded(sql: Connection, database: str) -> bool:
    """Whether there are tables of the first schema but no record of their revision."""
    from sqlalchemy import inspect

    inspector = inspect(sql)
    names = set(inspector.get_table_names())
    if "alembic_version" in names or not names & _FIRST_TABLES.keys():
        return False
    for table, columns in _FIRST_TABLES.items():
        found = {column["name"] for column in inspector.get_columns(table)} if table in names else set()
        if not columns <= found:
            raise SessionSchemaError(
                f"{database} has a table {table} that is not ours; choose another database with "
                "CLEVERAGENTS_DATABASE_URL"
            )
    return True
