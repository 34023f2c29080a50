"""Sessions in PostgreSQL: any number of hosts on one database. Needs the extra ``postgres``."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from cleveragents.errors import SessionBusyError, SessionDamagedError, SessionServiceError, SessionStorageError
from cleveragents.sessions.sql import migrate
from cleveragents.sessions.sql.database import Nothing, Parameters, Pool, Rows, Status, Transaction
from cleveragents.sessions.sql.migrate import Schema, engine_on, upgrade
from cleveragents.sessions.sql.query_loader import load_queries

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

CONNECT_TIMEOUT = 10
"""Seconds after which a server that does not answer counts as unreachable, unless the URL says otherwise."""

_FULL = ("too many connections", "too many clients", "remaining connection slots", "query_wait_timeout")
"""What a server or a pooler says that has no connection left: the driver gives no code for what fails so early."""

_PAUSE = 0.05
"""Seconds between two looks at a turn lock that is taken: people wait for it, and want to be able to stop."""

READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
"""Not READ WRITE, which would override a database that was made read-only."""

TURN = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY"

_KEEP_ALIVE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
"""Seconds and tries of the system's own signs of life, without which routers forget a connection that only waits."""

_NO_TIMEOUTS = """
SELECT set_config(name, '0', true) FROM pg_settings
WHERE name IN ('idle_in_transaction_session_timeout', 'transaction_timeout')
"""

_OBJECTS = f"""
SELECT to_regclass('{migrate.VERSION_TABLE}') IS NOT NULL AS ours,
       to_regclass('linked_plans') IS NOT NULL AND to_regclass('{migrate.OLD_VERSION_TABLE}') IS NOT NULL AS old,
       (SELECT min(oid::regclass::text) FROM pg_class WHERE relkind NOT IN ('r', 'p')
        AND oid IN (SELECT to_regclass(name) FROM unnest(%(tables)s::text[]) AS name)) AS other
"""  # noqa: S608 - our own names


class PostgresqlDatabase:
    """See Database. ``busy_timeout`` is in seconds."""

    def __init__(self, url: str, *, busy_timeout: float, schema: Schema) -> None:
        self._url = url
        self._busy_timeout = busy_timeout
        self._schema = schema
        self._pool: Pool[Connection] = Pool(self._connect)
        self._ready = False

    @cached_property
    def name(self) -> str:
        parts = urlsplit(self._url)
        return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @cached_property
    def statements(self) -> Mapping[str, str]:
        return load_queries("postgresql")

    # --- transactions ---------------------------------------------------------------------------------

    def query(self, sql: str, parameters: Parameters) -> Rows:
        if not self._is_ready(create=False):
            return Rows()
        with self._errors(), self._connection(sql, parameters) as (_, rows):
            return rows

    @contextlib.contextmanager
    def reading(self) -> Iterator[Transaction]:
        if not self._is_ready(create=False):
            yield Nothing()
            return
        with self._transaction(READ) as transaction:
            yield transaction

    @contextlib.contextmanager
    def writing(self) -> Iterator[Transaction]:
        self._is_ready(create=True)
        with self._transaction(self._begin_writing) as transaction:
            yield transaction

    @property
    def _begin_writing(self) -> str:
        """Set for the transaction alone: behind a pooler the next one may run on another's connection."""
        return f"{WRITE}; SET LOCAL lock_timeout = {max(1, round(self._busy_timeout * 1000))}"

    @contextlib.contextmanager
    def _transaction(self, begin: str) -> Iterator[Transaction]:
        with self._errors(), self._connection(begin, {}) as (connection, _):
            yield _Open(connection)
            connection.execute("COMMIT")

    @contextlib.contextmanager
    def _connection(self, first: str, parameters: Parameters) -> Iterator[tuple[Connection, Rows]]:
        """A connection on which the statement ``first`` has been run, and its rows.

        A pooled connection may have died with its server since it was used: then ``first``, which has changed
        nothing, is run again on a new one.
        """
        pool = self._pool
        connection, used = pool.take()
        try:
            try:
                rows = _rows(connection, first, parameters)
            except self._driver.OperationalError:
                if not used or not connection.broken:
                    raise
                pool.close()
                connection = self._connect()
                rows = _rows(connection, first, parameters)
            yield connection, rows
        finally:
            with contextlib.suppress(self._driver.Error):
                connection.rollback()
            if not connection.closed:
                pool.give_back(connection)

    # --- opening --------------------------------------------------------------------------------------

    @cached_property
    def _driver(self) -> Any:
        try:
            import psycopg
        except ImportError:
            raise SessionStorageError("a PostgreSQL database needs psycopg: install cleveragents[postgres]") from None
        return psycopg

    def _connect(self) -> Connection:
        try:
            options = self._driver.conninfo.conninfo_to_dict(self._url)
        except self._driver.ProgrammingError:
            # The driver's own text may quote the password.
            raise SessionStorageError(f"the URL of the database {self.name} is not a valid connection URL") from None
        connection = self._driver.connect(
            **{"connect_timeout": CONNECT_TIMEOUT, "application_name": "cleveragents"} | _KEEP_ALIVE | options,
            client_encoding="utf8",
            autocommit=True,
            prepare_threshold=None,  # a pooler may run the statement where it was not prepared
        )
        return cast("Connection", connection)

    def _is_ready(self, *, create: bool) -> bool:
        """Whether there is a database of our schema now; it is upgraded, and created if wanted."""
        if self._ready:
            return True
        revision = self._revision()
        if not self._schema.is_current(revision, self.name):
            if revision is None and not create and self._is_empty():
                return False
            self._upgrade()
        self._ready = True
        return True

    def _revision(self) -> str | None:
        with self._errors(), self._connection("SELECT 1", {}) as (connection, _):
            return self._revision_on(connection)

    def _revision_on(self, connection: Connection) -> str | None:
        """The recorded revision. Asking for the tables first spares the server's log an error."""
        tables = [*migrate.TABLES, migrate.VERSION_TABLE]
        there = _rows(connection, _OBJECTS, {"tables": tables})[0]
        if there["other"] is not None:
            raise SessionDamagedError(f"{there['other']} in the database is no table, as ours are; nothing was done")
        if there["ours"]:
            return migrate.recorded_revision(_versions(connection, migrate.VERSION_TABLE), self.name)
        return (
            migrate.old_revision(_versions(connection, migrate.OLD_VERSION_TABLE), self.name) if there["old"] else None
        )

    def _is_empty(self) -> bool:
        ask = "SELECT to_regclass('sessions') IS NULL AS is_empty"
        with self._errors(), self._connection(ask, {}) as (_, found):
            return found[0]["is_empty"] is True

    # --- schema ---------------------------------------------------------------------------------------

    def upgrade(self) -> None:
        self._is_ready(create=True)

    def _upgrade(self) -> None:
        """Create or upgrade the schema in one transaction; others wait, and find it done."""
        with self._errors(), self._connection("SELECT 1", {}) as (connection, _):
            engine = engine_on(connection, self._driver, "postgresql+psycopg")
            connection.execute(cast("Any", self._begin_writing))
            connection.execute(f"SELECT pg_advisory_xact_lock({_lock_key('schema')})")
            revision = self._revision_on(connection)
            if not self._schema.is_current(revision, self.name):
                upgrade(engine, self._schema, self.name, revision)

    def status(self) -> Status:
        revision = self._revision()
        ask = "SELECT pg_database_size(current_database()) AS size, current_setting('server_version') AS version"
        with self._errors(), self._connection(ask, {}) as (_, found):
            about = found[0]
            details = {"server": about["version"]}
            return Status(self.name, "PostgreSQL", revision, self._schema.head, about["size"], details)

    def backup(self, path: Path) -> None:
        raise SessionStorageError(
            f"{self.name} is backed up with PostgreSQL's own tools, such as: pg_dump -Fc -f {path}"
        )

    # --- turns ----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def turn(self, session_id: str, wait: float, cancelled: threading.Event | None) -> Iterator[None]:
        ask = f"SELECT pg_try_advisory_xact_lock({_lock_key(f'turn {session_id}')}) AS is_ours"
        cancelled = cancelled or threading.Event()
        deadline = time.monotonic() + wait
        with self._errors():
            # The lock belongs to a transaction that stays open, so nothing else can run on its connection.
            connection = self._connect()
            try:
                connection.execute(TURN)
                connection.execute(_NO_TIMEOUTS)
                while not _rows(connection, ask, {})[0]["is_ours"]:
                    remaining = deadline - time.monotonic()
                    if remaining <= 0 or cancelled.wait(min(_PAUSE, remaining)):
                        raise SessionBusyError(
                            f"session {session_id} is in use by another run; try again when it has ended"
                        )
                yield
            finally:
                # The transaction ends with its connection, however this process ends.
                connection.close()

    def forget_turn(self, session_id: str) -> None:
        """Nothing is left of an advisory lock."""

    # --- the end --------------------------------------------------------------------------------------

    def close(self) -> None:
        self._pool.close()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn what the driver raises into one of our errors."""
        try:
            yield
        except self._driver.Error as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> SessionServiceError:
        errors = self._driver.errors
        reason = " ".join(str(error).split())
        if isinstance(error, errors.LockNotAvailable | errors.DeadlockDetected):
            return SessionBusyError(
                f"the database {self.name} was in use by another process for {self._busy_timeout:g} seconds; try again"
            )
        if isinstance(error, errors.ReadOnlySqlTransaction | errors.InsufficientPrivilege):
            return SessionStorageError(f"the database {self.name} is read-only for us: {reason}")
        if isinstance(error, errors.TooManyConnections) or any(full in reason for full in _FULL):
            return SessionBusyError(f"the database {self.name} has no connection left for another run; try again later")
        if isinstance(error, errors.DataCorrupted | errors.IndexCorrupted):
            return SessionDamagedError(f"the database {self.name} is damaged: {reason}")
        return SessionStorageError(f"cannot use the database {self.name}: {reason}")


class _Open:
    """A transaction on a connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, parameters: Parameters) -> Rows:
        return _rows(self._connection, sql, parameters)

    def many(self, sql: str, parameters: Sequence[Parameters]) -> None:
        self._connection.cursor().executemany(cast("Any", sql), parameters)


def _rows(connection: Connection, sql: str, parameters: Parameters) -> Rows:
    cursor = connection.execute(cast("Any", sql), parameters)
    description = cursor.description
    return Rows(description, cursor.fetchall()) if description else Rows()


def _versions(connection: Connection, table: str) -> list[Any]:
    ask = f"SELECT version_num FROM {table} LIMIT 2"  # noqa: S608 - the table is ours
    return [row["version_num"] for row in _rows(connection, ask, {})]


def _lock_key(what: str) -> int:
    """A number for an advisory lock, which all programs on the server share."""
    return int.from_bytes(hashlib.sha256(f"cleveragents {what}".encode()).digest()[:8], signed=True)
