"""Sessions in a SQLite file: durable at every commit, shared by the processes of one machine."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import random
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from cleveragents.disk import locks
from cleveragents.disk.files import make_folder, open_file, storage_errors, sync_folder
from cleveragents.errors import (
    SessionBusyError,
    SessionDamagedError,
    SessionServiceError,
    SessionStorageError,
    StorageError,
)
from cleveragents.sessions.sql import migrate
from cleveragents.sessions.sql.database import Nothing, Parameters, Pool, Rows, Status, Transaction
from cleveragents.sessions.sql.migrate import Schema, engine_on, upgrade
from cleveragents.sessions.sql.query_loader import load_queries
from cleveragents.sessions.sql.sqlite_guard import COUNT_TABLES, INTERRUPTED, check_code, check_tables, guard

SAFE_WAL = (3, 51, 3)
"""Older SQLite libraries can corrupt a WAL database that several processes write to (fixed in 3.51.3)."""

OLDEST = (3, 37, 0)
"""The first SQLite library with all that the schema uses."""

# SQLite's own waiting backs off up to a tenth of a second and lets a busy writer starve the others.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0001, 0.001
_LONG_WAIT = 0.5
"""Seconds after which a waiting call looks ten times less often."""

_BUSY, _LOCKED, _CORRUPT, _NOT_A_DATABASE = 5, 6, 11, 26


class SqliteDatabase:
    """See Database. ``busy_timeout`` is in seconds."""

    def __init__(self, path: Path, *, busy_timeout: float, journal_mode: str, schema: Schema) -> None:
        self.path = path.absolute()
        self._busy_timeout = busy_timeout
        self._journal_mode = journal_mode
        self._schema = schema
        self._pool = Pool(self._connect)
        self._file: tuple[int, int] | None = None  # device and inode that the connections are open on

    @property
    def name(self) -> str:
        return str(self.path)

    @cached_property
    def statements(self) -> Mapping[str, str]:
        return load_queries("sqlite")

    # --- transactions ---------------------------------------------------------------------------------

    def query(self, sql: str, parameters: Parameters) -> Rows:
        if not self._is_ready(create=False):
            return Rows()
        with self._errors(), self._connection() as connection:
            return _Open(connection, self._patiently).rows(sql, parameters)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Transaction]:
        if not self._is_ready(create=False):
            yield Nothing()
            return
        with self._errors(), self._connection() as connection:
            connection.execute("BEGIN")
            yield _Open(connection, self._patiently)
            connection.execute("COMMIT")

    @contextlib.contextmanager
    def writing(self) -> Iterator[Transaction]:
        self._is_ready(create=True)
        with self._errors(), self._connection() as connection:
            self._patiently(connection.execute, "BEGIN IMMEDIATE")
            yield _Open(connection, self._patiently)
            self._patiently(connection.execute, "COMMIT")

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Any]:
        """A connection, without any transaction left in it when the block ends."""
        pool = self._pool
        connection, _ = pool.take()
        try:
            yield connection
        finally:
            if connection.in_transaction:
                connection.rollback()
            pool.give_back(connection)

    def _patiently(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """The result of ``call``, tried again while another process holds the database."""
        start = None
        while True:
            try:
                return call(*arguments)
            except self._driver.OperationalError as error:
                if _code(error) not in {_BUSY, _LOCKED}:
                    raise
                start = start or time.monotonic()
                waited = time.monotonic() - start
                if waited >= self._busy_timeout:
                    raise
            pause = random.uniform(_SHORTEST_PAUSE, _LONGEST_PAUSE)  # noqa: S311 - not a secret
            time.sleep(pause if waited < _LONG_WAIT else 10 * pause)

    # --- opening --------------------------------------------------------------------------------------

    @cached_property
    def _driver(self) -> ModuleType:
        """The newest SQLite library there is. One per process: two on one file would undo each other's locks."""
        try:
            driver = importlib.import_module("pysqlite3")
        except ImportError:
            driver = importlib.import_module("sqlite3")
        if driver.sqlite_version_info < OLDEST:
            raise SessionStorageError(
                f"sessions need SQLite {'.'.join(map(str, OLDEST))} or newer, not {driver.sqlite_version}; "
                "install pysqlite3"
            )
        return driver

    def _connect(self) -> Any:
        connection = self._driver.connect(
            self.path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            guard(connection)
            self._patiently(connection.execute, "PRAGMA synchronous = FULL")  # reads the file
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_journal_mode(self, connection: Any) -> None:
        """WAL where it is safe and wanted; a file system that cannot have it keeps its rollback journal."""
        wanted = self._journal_mode if self._driver.sqlite_version_info >= SAFE_WAL else "delete"
        (current,) = self._patiently(connection.execute, "PRAGMA journal_mode").fetchone()
        if current != wanted:
            self._patiently(connection.execute, f"PRAGMA journal_mode = {wanted}").fetchone()

    def _is_ready(self, *, create: bool) -> bool:
        """Whether there is a database of our schema now; it is upgraded, and created if wanted."""
        found = self._stat()
        file = None if found is None else (found.st_dev, found.st_ino)
        if file is not None and file == self._file:
            return True
        if self._file is not None:
            # What our connections are open on is no longer there: what they write would be lost.
            self.close()
            if file is None:
                raise SessionStorageError(f"the database {self.path} was removed while it was in use")
        if file is None and not create:
            return False
        with self._errors():
            return self._prepare(create=create)

    def _stat(self) -> os.stat_result | None:
        """What the system says about the file; None when there is none."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SessionStorageError(f"cannot open the database {self.path}: {error.strerror}") from error
        if stat.S_ISFIFO(found.st_mode) or stat.S_ISCHR(found.st_mode):
            raise SessionStorageError(f"cannot open the database {self.path}: not a regular file")
        return found

    def _prepare(self, *, create: bool) -> bool:
        if create:
            with storage_errors(self.path, "create the database"):
                make_folder(self.path.parent)
                os.close(open_file(self.path, os.O_RDWR, create=True))
        with self._connection() as connection:
            check_code(self._patiently, connection, self.name)
            revision = self._revision(connection)
            if revision is not None:
                check_tables(self._patiently, connection, self.name)
            if not self._schema.is_current(revision, self.name):
                if revision is None and self._is_empty(connection):
                    if not create:
                        return False
                    # Before others come, whose reading could hold up a commit without it.
                    self._set_journal_mode(connection)
                self._upgrade(connection)
            self._set_journal_mode(connection)
        found = self.path.stat()
        self._file = (found.st_dev, found.st_ino)
        return True

    def _revision(self, connection: Any) -> str | None:
        try:
            found = self._patiently(connection.execute, f"SELECT version_num FROM {migrate.VERSION_TABLE} LIMIT 2")  # noqa: S608 - ours
        except self._driver.OperationalError as error:
            if "no such table" not in str(error):
                raise
            return self._old_revision(connection)
        return migrate.recorded_revision([value for (value,) in found], self.name)

    def _old_revision(self, connection: Any) -> str | None:
        """The revision where releases up to schema 0002 recorded it; None without it, or without our tables."""
        ask = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('linked_plans', ?)"
        (tables,) = self._patiently(connection.execute, ask, [migrate.OLD_VERSION_TABLE]).fetchone()
        if tables < 2:  # noqa: PLR2004 - both
            return None
        found = self._patiently(connection.execute, f"SELECT version_num FROM {migrate.OLD_VERSION_TABLE} LIMIT 2")  # noqa: S608 - ours
        return migrate.old_revision([value for (value,) in found], self.name)

    def _is_empty(self, connection: Any) -> bool:
        """Whether there are no tables of ours, whatever else there is."""
        (tables,) = self._patiently(connection.execute, COUNT_TABLES).fetchone()
        return not tables

    # --- schema ---------------------------------------------------------------------------------------

    def upgrade(self) -> None:
        self._is_ready(create=True)

    def _upgrade(self, connection: Any) -> None:
        """Create or upgrade the schema in one transaction; others wait, and find it done."""
        busy = f"the database {self.path} was being upgraded for {self._busy_timeout:g} seconds; try again"
        with self._lock(self._lock_file("schema"), self._busy_timeout, busy):
            revision = self._revision(connection)
            if not self._schema.is_current(revision, self.name):
                self._upgrade_locked(connection, revision)

    def _upgrade_locked(self, connection: Any, revision: str | None) -> None:
        # Alembic does not know our way of waiting, so SQLite waits by itself.
        connection.execute(f"PRAGMA busy_timeout = {round(self._busy_timeout * 1000)}")
        # Tables may have to be rebuilt, which must not delete what refers to them. Only outside a transaction.
        connection.execute("PRAGMA foreign_keys = OFF")
        try:
            engine = engine_on(connection, self._driver, "sqlite")
            connection.execute("BEGIN IMMEDIATE")
            if not self._is_empty(connection):
                # No one can write now, so this is what the upgrade starts from.
                self._copy(self.path.with_name(f"{self.path.name}.before-{self._schema.head}"), replace=True)
            upgrade(engine, self._schema, self.name, revision)
        finally:
            if connection.in_transaction:
                connection.rollback()
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA busy_timeout = 0")

    def status(self) -> Status:
        found = self._stat()
        if found is None:
            return Status(self.name, "SQLite", None, self._schema.head, None, {})
        with self._errors(), self._connection() as connection:
            check_code(self._patiently, connection, self.name)
            (journal,) = self._patiently(connection.execute, "PRAGMA journal_mode").fetchone()
            return Status(
                self.name,
                "SQLite",
                self._revision(connection),
                self._schema.head,
                found.st_size,
                {"journal_mode": journal, "library": f"{self._driver.__name__} {self._driver.sqlite_version}"},
            )

    def backup(self, path: Path) -> None:
        if not self._is_ready(create=False):
            raise SessionStorageError(f"there is no database at {self.path} yet, so there is nothing to back up")
        with self._errors():
            self._copy(path, replace=False)

    def _copy(self, path: Path, *, replace: bool) -> None:
        """A copy of the database, whole or not at all, for its owner only."""
        from tempfile import mkstemp

        with storage_errors(path, "write the backup"):
            if not replace and path.exists():
                raise FileExistsError(errno.EEXIST, "there is a file of this name already", str(path))
            descriptor, name = mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
            os.close(descriptor)
            temporary = Path(name)
            try:
                source, target = self._connect(), self._driver.connect(temporary)
                with contextlib.closing(source), contextlib.closing(target):
                    target.execute("PRAGMA synchronous = FULL")
                    source.backup(target)
                temporary.replace(path)
                sync_folder(path.parent)
            finally:
                temporary.unlink(missing_ok=True)

    # --- turns ----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def turn(self, session_id: str, wait: float, cancelled: threading.Event | None) -> Iterator[None]:
        busy = f"session {session_id} is in use by another run; try again when it has ended"
        with self._lock(self._lock_file(session_id), wait, busy, cancelled):
            yield

    def forget_turn(self, session_id: str) -> None:
        path = self._lock_file(session_id)
        with contextlib.suppress(OSError):
            lock = locks.acquire(path, 0) if path.exists() else None
            if lock is not None:
                locks.discard(path)
                locks.release(lock)

    @contextlib.contextmanager
    def _lock(self, path: Path, wait: float, busy: str, cancelled: threading.Event | None = None) -> Iterator[None]:
        with self._errors(), storage_errors(path, "lock"):
            lock = locks.acquire(path, wait, cancelled)
        if lock is None:
            raise SessionBusyError(busy)
        try:
            yield
        finally:
            locks.release(lock)

    def _lock_file(self, name: str) -> Path:
        # Beside the file itself, so that all agree on it who reach the file by different links.
        file = self.path.resolve()
        return file.with_name(f"{file.name}.locks") / f"{name}.lock"

    # --- the end --------------------------------------------------------------------------------------

    def close(self) -> None:
        self._pool.close()
        # A connection that is at work goes back to the old pool, and is not used again.
        self._pool = Pool(self._connect)
        self._file = None

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn what the driver raises into one of our errors."""
        try:
            yield
        except self._driver.Error as error:
            if _code(error) == INTERRUPTED:
                raise KeyboardInterrupt from None
            raise self._error(error) from error
        except SessionServiceError:
            raise
        except StorageError as error:
            raise SessionStorageError(str(error)) from error

    def _error(self, error: Exception) -> SessionServiceError:
        code = _code(error)
        if code in {_BUSY, _LOCKED}:
            return SessionBusyError(
                f"the database {self.path} was in use by another process for {self._busy_timeout:g} seconds; try again"
            )
        if code in {_CORRUPT, _NOT_A_DATABASE} or "decode to UTF-8" in str(error):
            return SessionDamagedError(
                f"the database {self.path} is damaged ({error}); it is left as it is: restore a backup, or move it "
                "away to start anew"
            )
        return SessionStorageError(f"cannot use the database {self.path}: {error}")


def _code(error: Exception) -> int:
    """SQLite's own primary error code; 0 when the error is the driver's."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


class _Open:
    """A transaction on a connection."""

    def __init__(self, connection: Any, patiently: Callable[..., Any]) -> None:
        self._connection = connection
        self._patiently = patiently

    def rows(self, sql: str, parameters: Parameters) -> Rows:
        cursor = self._patiently(self._connection.execute, sql, parameters)
        return Rows(cursor.description, cursor.fetchall())

    def many(self, sql: str, parameters: Sequence[Parameters]) -> None:
        self._connection.executemany(sql, parameters)
