"""The only place where concrete classes are picked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cleveragents.sessions.service import SessionService

if TYPE_CHECKING:
    from cleveragents.storage.engine import Database

DATABASE_FILE = "cleveragents.db"


def open_database(url: str | None = None) -> Database:
    """The database of ``url``, else of ``CLEVERAGENTS_DATABASE_URL``, else the SQLite file in the data home."""
    from cleveragents.storage import engine
    from cleveragents.storage.files import data_home

    return engine.open_database(
        url or os.environ.get("CLEVERAGENTS_DATABASE_URL") or f"sqlite:///{data_home() / DATABASE_FILE}"
    )


def open_sessions(url: str | None = None) -> SessionService:
    """The sessions in the database of ``url`` (see ``open_database``); nothing is made before the first write.

    A context manager. Raises InvalidSettingError for a URL that names no database.
    """
    from cleveragents.storage.sql_sessions import SqlSessionRepository

    return SessionService(SqlSessionRepository(open_database(url)))
