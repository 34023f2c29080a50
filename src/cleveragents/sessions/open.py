"""Opening the sessions of a database: the one that is named, or the one in the data home."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qsl, quote, urlencode, urlsplit, urlunsplit

from cleveragents.disk.home import data_home
from cleveragents.errors import InvalidSettingError
from cleveragents.sessions.service import SessionService
from cleveragents.sessions.sql.migrate import CURRENT, Schema

if TYPE_CHECKING:
    from cleveragents.sessions.sql.database import Database

DATABASE_FILE = "cleveragents.db"

BUSY_TIMEOUT = 30.0
"""Seconds that a call waits for another process to let go of the database, unless the URL says otherwise."""


def open_sessions(url: str | None = None) -> SessionService:
    """The sessions in the database of ``url`` (see ``open_database``); nothing is made before the first write.

    A context manager. Raises InvalidSettingError for a URL that names no database.
    """
    from cleveragents.sessions.sql.store import SqlSessionStore

    return SessionService(SqlSessionStore(open_database(url)))


def open_database(url: str | None = None, schema: Schema = CURRENT) -> Database:
    """The database of ``url``, else of ``CLEVERAGENTS_DATABASE_URL``, else the SQLite file in the data home.

    Nothing is read or written yet. A URL is ``sqlite:///relative/path``, ``sqlite:////absolute/path`` or
    ``postgresql+psycopg://user@host/name``. Both take
    ``?busy_timeout=SECONDS``, SQLite also ``?journal_mode=delete``. Raises InvalidSettingError for any other.
    """
    if url is None:
        url = os.environ.get("CLEVERAGENTS_DATABASE_URL") or f"sqlite:///{data_home() / DATABASE_FILE}"
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InvalidSettingError(f"the database URL is not valid: {error}") from None
    options = dict(parse_qsl(parts.query))
    timeout = _seconds(options.pop("busy_timeout", BUSY_TIMEOUT))
    if parts.scheme in {"sqlite", "sqlite+pysqlite"}:
        return _sqlite(parts, options, timeout, schema)
    if parts.scheme in {"postgresql", "postgres", "postgresql+psycopg"}:
        return _postgresql(parts, options, timeout, schema)
    raise InvalidSettingError(
        f"a database URL starts with sqlite:/// or postgresql+psycopg://, not with {url.partition(':')[0]!r:.40}"
    )


def _sqlite(parts: SplitResult, options: dict[str, str], timeout: float, schema: Schema) -> Database:
    from cleveragents.sessions.sql.sqlite import SqliteDatabase

    journal_mode = options.pop("journal_mode", "wal").lower()
    path = parts.path.removeprefix("/")
    if parts.netloc or options or path in {"", ":memory:"} or journal_mode not in {"wal", "delete"}:
        raise InvalidSettingError(
            "a SQLite database is named sqlite:///PATH, with ?busy_timeout=SECONDS and ?journal_mode=wal|delete "
            "if need be; databases in memory are not supported"
        )
    return SqliteDatabase(Path(path), busy_timeout=timeout, journal_mode=journal_mode, schema=schema)


def _postgresql(parts: SplitResult, options: dict[str, str], timeout: float, schema: Schema) -> Database:
    """Options that are not ours are the server's."""
    from cleveragents.sessions.sql.postgresql import PostgresqlDatabase

    target = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(options, quote_via=quote), ""))
    return PostgresqlDatabase(target, busy_timeout=timeout, schema=schema)


def _seconds(text: str | float) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86_400:  # noqa: PLR2004 - a day
        raise InvalidSettingError(f"busy_timeout must be a number of seconds, not {text!r:.40}")
    return seconds
