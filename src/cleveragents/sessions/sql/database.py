"""The database behind the sessions: what it can do, and what its two kinds have in common."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

Parameters = Mapping[str, Any]


class Rows:
    """What a statement gave, read by the names of its columns, whatever their order.

    ``description`` is the cursor's: the names come first in it. They are looked up once, and only where they are used.
    """

    __slots__ = ("_description", "_values")

    def __init__(
        self, description: Sequence[Sequence[Any]] | None = None, values: Sequence[tuple[Any, ...]] = ()
    ) -> None:
        self._description = description or ()
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        names = self._names()
        return (dict(zip(names, row, strict=False)) for row in self._values)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return dict(zip(self._names(), self._values[index], strict=False))

    def columns(self, *names: str) -> Iterable[tuple[Any, ...]]:
        """Of each row the values of two or more columns, in the order of ``names``.

        For where rows are many: a mapping for each would take a fifth of the time that loading messages takes.
        """
        found = self._names()
        if list(names) == found or not self._values:
            return self._values
        return map(itemgetter(*map(found.index, names)), self._values)

    def _names(self) -> list[str]:
        return [column[0] for column in self._description]


class Transaction(Protocol):
    """Statements that happen together or not at all."""

    def rows(self, sql: str, parameters: Parameters) -> Rows:
        """Run one statement and return all it gives."""

    def many(self, sql: str, parameters: Sequence[Parameters]) -> None:
        """Run one statement once for each of ``parameters``."""


class Nothing:
    """A reading transaction on a database that is not there yet."""

    def rows(self, _sql: str, _parameters: Parameters) -> Rows:
        """No rows."""
        return Rows()

    def many(self, _sql: str, _parameters: Sequence[Parameters]) -> None:
        """Never called: a reading transaction does not write."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Status:
    """What can be said about a database without changing it. ``schema`` is None when there is none yet."""

    database: str
    kind: str
    schema: str | None
    expected_schema: str
    size_bytes: int | None
    details: Mapping[str, str]


class Database(Protocol):
    """A database that holds sessions. Safe to use from several threads, and after a fork.

    Nothing is made before the first write; until then every read finds nothing. An older schema is upgraded by
    the first call. Errors of the driver come out as SessionStorageError, SessionBusyError, SessionDamagedError
    or SessionSchemaError, in one line that names the database without its password.
    """

    @property
    def name(self) -> str:
        """How the database is called in messages."""

    @property
    def statements(self) -> Mapping[str, str]:
        """The texts of queries.sql for this kind of database."""

    def query(self, sql: str, parameters: Parameters) -> Rows:
        """The rows of one statement that only reads."""

    def reading(self) -> AbstractContextManager[Transaction]:
        """A transaction that sees one state of the database, whatever others write meanwhile."""

    def writing(self) -> AbstractContextManager[Transaction]:
        """A transaction that is on disk when the block ends, and undone when it raises."""

    def turn(self, session_id: str, wait: float, cancelled: threading.Event | None) -> AbstractContextManager[None]:
        """The turn lock of a session, waited for ``wait`` seconds or until ``cancelled``; then SessionBusyError."""

    def forget_turn(self, session_id: str) -> None:
        """Remove what is left of the turn lock of a deleted session."""

    def status(self) -> Status:
        """What can be said about the database; it may be missing, old, or newer than this release."""

    def upgrade(self) -> None:
        """Create the schema, or bring it up to date."""

    def backup(self, path: Path) -> None:
        """Write a consistent copy to the new file ``path`` while others go on working."""

    def close(self) -> None:
        """Close all connections."""


def orphans_told(database: Database) -> str:
    """Rows that belong to no session, as a program that ignores foreign keys leaves them; "" where there are none.

    Cost: every row of the database is looked up.
    """
    found = database.query(database.statements["orphans"], {})
    return ", ".join(f"{row['orphans']:,} in {row['table_name']}" for row in found if row["orphans"])


class Closable(Protocol):
    """What a pool holds: a driver's connection."""

    def close(self) -> None:
        """End the connection."""


Connection = TypeVar("Connection", bound=Closable)


class Pool(Generic[Connection]):
    """Idle connections for reuse; each is used by one thread at a time."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._idle: list[Connection] = []
        _pools.add(self)

    def take(self) -> tuple[Connection, bool]:
        """A connection, and whether it has been used before."""
        try:
            return self._idle.pop(), True
        except IndexError:
            return self._connect(), False

    def give_back(self, connection: Connection) -> None:
        """Keep ``connection`` for the next who needs one."""
        self._idle.append(connection)

    def close(self) -> None:
        """Close all that are idle."""
        while self._idle:
            self._idle.pop().close()


_pools: WeakSet[Pool[Any]] = WeakSet()


def _close_all() -> None:
    for pool in list(_pools):
        pool.close()


if hasattr(os, "register_at_fork"):
    # A connection must not be in two processes: neither database survives that.
    os.register_at_fork(before=_close_all)
