"""Opening the sessions of a database: the one that is named, or the one in the data home."""

from __future__ import annotations

import os
import re
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

_SQLITE = {"sqlite", "sqlite+pysqlite"}
_POSTGRESQL = {"postgresql", "postgres", "postgresql+psycopg"}
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")

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
    except ValueError:
        # Its text may quote the password.
        raise _malformed() from None
    if parts.scheme not in {*_SQLITE, *_POSTGRESQL}:
        given = f", not with {parts.scheme!r:.40}" if "://" in url else ""
        raise InvalidSettingError(f"a database URL starts with sqlite:/// or postgresql+psycopg://{given}")
    if parts.scheme in _POSTGRESQL and not _is_well_formed(parts):
        raise _malformed()
    options = dict(parse_qsl(parts.query))
    timeout = _seconds(options.pop("busy_timeout", BUSY_TIMEOUT))
    open_it = _sqlite if parts.scheme in _SQLITE else _postgresql
    return open_it(parts, options, timeout, schema)


def _is_well_formed(parts: SplitResult) -> bool:
    """Whether no special character of a password can have been taken for a border between the parts."""
    login, _, server = parts.netloc.rpartition("@")
    ports = re.fullmatch(r"(\[[^\]]*\]|[^:\[\]]*)(:\d*)?", server) if "," not in server else server
    is_login_whole = "@" not in login and login.count(":") <= 1 and not _STRAY_PERCENT.search(login)
    is_rest_free = "@" not in parts.path + parts.query and not parts.fragment
    return bool(ports or not server) and is_login_whole and is_rest_free


def _malformed() -> InvalidSettingError:
    return InvalidSettingError(
        "the database URL is not valid: special characters of a password are written percent-encoded (%40 for @, "
        "%3A for :, %2F for /, %23 for #, %3F for ?, %25 for %), or give the password in PGPASSWORD"
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
