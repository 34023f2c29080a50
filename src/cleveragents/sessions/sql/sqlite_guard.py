"""What keeps a SQLite file that came from elsewhere from doing more than holding data.

Views and triggers are code of whoever made the file, and so are expressions in the tables: they would run in our
queries, for ever if they are made so. https://www.sqlite.org/security.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cleveragents.errors import SessionDamagedError
from cleveragents.sessions.sql.migrate import TABLES

_STEPS = 1_000_000
"""Steps of SQLite's machine, some ten milliseconds, after which a Ctrl-C is looked for."""

INTERRUPTED = 9
"""SQLite's error code of a query that a signal has ended."""

_CODE = """
SELECT CASE WHEN sql LIKE 'CREATE VIRTUAL%' THEN 'virtual table' ELSE type END AS kind, name FROM sqlite_master
WHERE type IN ('trigger', 'view') OR (type = 'table' AND sql LIKE 'CREATE VIRTUAL%' AND lower(name) IN ({names}))
UNION ALL SELECT 'computed column of ' || list.name, column.name
FROM pragma_table_list AS list, pragma_table_xinfo(list.name) AS column
WHERE list.schema = 'main' AND lower(list.name) IN ({names}) AND column.hidden <> 0
LIMIT 1
"""

_LOOSE = """
SELECT 'table that takes any kind of value,' AS kind, name FROM pragma_table_list
WHERE schema = 'main' AND lower(name) IN ({names}) AND NOT strict
LIMIT 1
"""

_NAMES = ", ".join(f"'{table}'" for table in TABLES)

COUNT_TABLES = f"SELECT count(*) FROM sqlite_master WHERE type = 'table' AND lower(name) IN ({_NAMES})"  # noqa: S608 - ours
"""How many of our tables there are."""


def guard(connection: Any) -> None:
    """Let nothing in the file call what can do harm, and let signals end a query that would not end."""
    connection.execute("PRAGMA trusted_schema = OFF")
    # Whatever a signal's handler raises is raised in here, and ends the query.
    connection.set_progress_handler(lambda: 0, _STEPS)


def check_code(patiently: Callable[..., Any], connection: Any, database: str) -> None:
    """Refuse a file with code in it, before anything is read. Raises SessionDamagedError, which names what it is."""
    _refuse(patiently(connection.execute, _CODE.format(names=_NAMES)).fetchone(), database)


def check_tables(patiently: Callable[..., Any], connection: Any, database: str) -> None:
    """Refuse a file whose tables, recorded as ours, are not: text in them is found by no list."""
    _refuse(patiently(connection.execute, _LOOSE.format(names=_NAMES)).fetchone(), database)


def _refuse(found: tuple[str, str] | None, database: str) -> None:
    if found is not None:
        kind, name = found
        raise SessionDamagedError(
            f"the database {database} has a {kind} {name!r:.60} that is not ours; nothing was done: drop it, or choose "
            "another database with CLEVERAGENTS_DATABASE_URL"
        )
