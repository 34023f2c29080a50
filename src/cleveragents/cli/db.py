"""``cleveragents db``: the database that sessions are kept in."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cleveragents.cli.kit.command_group import CommandGroup
from cleveragents.cli.kit.options import format_option
from cleveragents.cli.kit.output import say, show, show_json

if TYPE_CHECKING:
    from cleveragents.sessions.sql.database import Database


@contextlib.contextmanager
def _database() -> Iterator[Database]:
    from cleveragents.sessions.open import open_database

    with contextlib.closing(open_database()) as database:
        yield database


@click.group(cls=CommandGroup, epilog="Example: cleveragents db status")
def db() -> None:
    """The database of sessions: CLEVERAGENTS_DATABASE_URL, else a SQLite file in the data home."""


@db.command(short_help="Print which database is used.", epilog="Example: cleveragents db path")
def path() -> None:
    """Print which database is used: the path of the SQLite file, or the URL without its password."""
    with _database() as database:
        show(database.name)


@db.command(epilog="Example: cleveragents db status --format json")
@format_option
def status(format_: str) -> None:
    """Tell what the database is and whether its schema is up to date. Nothing is made or changed."""
    from cleveragents.sessions.sql.database import orphans_told

    with _database() as database:
        found = database.status()
        orphans = orphans_told(database) if found.schema == found.expected_schema else ""
    facts = {
        "database": found.database,
        "kind": found.kind,
        "schema": found.schema,
        "expected_schema": found.expected_schema,
        "size_bytes": found.size_bytes,
        **found.details,
        **({"rows_without_a_session": orphans} if orphans else {}),
    }
    if format_ != "table":
        show_json(facts)
        return
    for name, value in facts.items():
        show(f"{name.replace('_', ' ')}: {'none yet' if value is None else value}")


@db.command(epilog="Example: cleveragents db upgrade")
def upgrade() -> None:
    """Create the database, or bring its schema up to date. Other commands do the same when they need it.

    An older SQLite database is copied beside itself first.
    """
    with _database() as database:
        before = database.status().schema
        database.upgrade()
        now = database.status().schema
    if before == now:
        say(f"{database.name} is up to date: schema {now}")
    else:
        say(f"{database.name} is at schema {now} now; before: {before or 'none'}")


@db.command(
    short_help="Write a consistent copy of the SQLite database.",
    epilog="Example: cleveragents db backup sessions-monday.db",
)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
def backup(file: Path | None) -> None:
    """Write a consistent copy of the SQLite database to FILE, while others go on working, and print its name.

    Without FILE the name has the time in it. A file that is there already is kept. PostgreSQL has its own tools.
    """
    target = file or Path(f"cleveragents-{datetime.now(UTC):%Y%m%d-%H%M%S}.db")
    with _database() as database:
        database.backup(target)
    show(str(target))
