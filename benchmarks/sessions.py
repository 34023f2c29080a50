"""The session store beside a bare driver, and a long session beside short ones, on both databases.

Interleaved runs, so that whatever else the machine does hits every kind alike; medians, and their ratios.
"""

import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from cleveragents import MessageDraft, SessionService, open_sessions
from cleveragents.sessions.sql.query_loader import load_queries

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.postgres import PostgresServer

LENGTHS = (10, 1_000, 100_000)
ROUNDS = 300
TEXT = "What was said in this message is neither long nor short, as most messages are. " * 3

Cases = dict[str, Callable[[], object]]


class Bare:
    """The store's own statements on the driver alone, durable as the store is, without any check or conversion."""

    def __init__(self, url: str) -> None:
        self.connection: Any
        if url.startswith("sqlite"):
            import pysqlite3  # type: ignore[import-untyped]

            self.sql = load_queries("sqlite")
            self.connection = pysqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
            self.connection.execute("PRAGMA synchronous = FULL")
            self.connection.execute("PRAGMA foreign_keys = ON")
            self.begin = "BEGIN IMMEDIATE"
        else:
            self.sql = load_queries("postgresql")
            self.connection = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)
            self.begin = "BEGIN"

    def append(self, session_id: str) -> None:
        execute, now = self.connection.execute, time.time_ns() // 1000
        execute(self.begin)
        (count,) = execute(self.sql["take_numbers"], {"session_id": session_id, "count": 1, "now": now}).fetchone()
        empty = dict.fromkeys(("tool_call_id", "tool_calls", "parts", "agent", "metadata"))
        row = {"session_id": session_id, "sequence": count - 1, "role": "user", "content": TEXT, "created_at": now}
        execute(self.sql["add_message"], row | empty)
        execute("COMMIT")

    def last(self, session_id: str) -> list[Any]:
        found: list[Any] = self.connection.execute(
            self.sql["last_messages"], {"session_id": session_id, "limit": 10}
        ).fetchall()
        return found


def medians(cases: Cases, rounds: int = ROUNDS) -> dict[str, float]:
    """The median time of each case, in microseconds, over rounds in which each has its turn."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, call in cases.items():
            begun = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begun)
    return {name: statistics.median(values) * 1e6 for name, values in times.items()}


def session_of(sessions: SessionService, length: int) -> str:
    session_id = sessions.create("team/bench").session_id
    for start in range(0, length, 10_000):
        sessions.append_all(session_id, [MessageDraft("user", TEXT)] * min(10_000, length - start))
    return session_id


def show(what: str, ours: float, other: float, limit: float) -> None:
    print(f"  {what:48} {ours:9.1f} us {other:9.1f} us  ratio {ours / other:5.2f} (at most {limit:g})")


def rate(what: str, found: float, least: str = "") -> None:
    print(f"  {what:48} {found:9,.0f} a second{f' (at least {least})' if least else ''}")


def beside_a_bare_driver(url: str) -> None:
    with open_sessions(url) as sessions:
        bare = Bare(url)
        for length in LENGTHS:
            ours, theirs = session_of(sessions, length), session_of(sessions, length)
            found = medians(
                {
                    "append": lambda ours=ours: sessions.append(ours, "user", TEXT),  # type: ignore[misc]
                    "bare append": lambda theirs=theirs: bare.append(theirs),  # type: ignore[misc]
                    "last": lambda ours=ours: sessions.last_messages(ours, 10),  # type: ignore[misc]
                    "bare last": lambda theirs=theirs: bare.last(theirs),  # type: ignore[misc]
                }
            )
            show(f"append at length {length:,}, beside bare", found["append"], found["bare append"], 2)
            show(f"last 10 of {length:,}, beside bare", found["last"], found["bare last"], 10)
        bare.connection.close()


def loading(url: str) -> None:
    with open_sessions(url) as sessions:
        session_id = session_of(sessions, 10_000)
        found = medians({"load": lambda: sessions.messages(session_id)}, 15)
        rate("10,000 messages as domain objects", 10_000 / found["load"] * 1e6, "150,000")


def write(url: str, session_id: str, count: int, barrier: Any) -> None:
    with open_sessions(url) as sessions:
        sessions.count(session_id)
        barrier.wait()
        for _ in range(count):
            sessions.append(session_id, "user", TEXT)
        barrier.wait()


def writing_together(url: str, *, apart: bool, writers: int = 4, count: int = 250) -> None:
    """To one session, or each to one of its own. Several rounds: syncing a disk varies more than anything else here."""
    rates = []
    for _ in range(5):
        with open_sessions(url) as sessions:
            ids = [sessions.create().session_id for _ in range(writers)]
        targets = ids if apart else ids[:1] * writers
        barrier = multiprocessing.Barrier(writers + 1)
        processes = [multiprocessing.Process(target=write, args=(url, each, count, barrier)) for each in targets]
        for process in processes:
            process.start()
        barrier.wait()
        begun = time.perf_counter()
        barrier.wait()
        rates.append(writers * count / (time.perf_counter() - begun))
        for process in processes:
            process.join()
        with open_sessions(url) as sessions:
            found = sum(map(sessions.count, set(targets)))
            assert found == writers * count  # noqa: S101 - a rate of lost messages is worth nothing
    where = "each to its own session" if apart else "to one session"
    rate(f"{writers} processes x {count} appends {where}", statistics.median(rates), "" if apart else "1,000 on SQLite")


def a_long_one_among_many(few_url: str, many_url: str) -> None:
    """100 small sessions, beside 10,000 small ones and one of 100,000 messages."""
    with open_sessions(few_url) as few, open_sessions(many_url) as many:
        small = [session_of(few, 5) for _ in range(100)]
        for _ in range(10_000):
            session_of(many, 5)
        long = session_of(many, 100_000)
        found = medians(
            {
                "list, few": lambda: few.list(limit=20),
                "list, many": lambda: many.list(limit=20),
                "last, few": lambda: few.last_messages(small[0], 10),
                "last, many": lambda: many.last_messages(long, 10),
                "append, few": lambda: few.append(small[1], "user", TEXT),
                "append, many": lambda: many.append(long, "user", TEXT),
            }
        )
        for what in ("list", "last", "append"):
            show(f"{what}, among 10,000 and a long one", found[f"{what}, many"], found[f"{what}, few"], 2)


@contextmanager
def databases() -> Iterator[Iterator[tuple[str, Callable[[], str]]]]:
    """For each kind of database its name, and what gives the URL of a new one."""
    # The server's own settings: durable.
    server = PostgresServer(settings="max_connections = 60\n")
    try:
        with tempfile.TemporaryDirectory() as folder:
            numbers = iter(range(1000))
            yield iter(
                [
                    ("SQLite", lambda: f"sqlite:///{folder}/{next(numbers)}.db"),
                    ("PostgreSQL", server.new_database),
                ]
            )
    finally:
        server.stop()


def main() -> None:
    """Print the medians and the ratios that are promised."""
    with databases() as kinds:
        for name, new_url in kinds:
            print(name)
            beside_a_bare_driver(new_url())
            loading(new_url())
            writing_together(new_url(), apart=False)
            writing_together(new_url(), apart=True)
            a_long_one_among_many(new_url(), new_url())


if __name__ == "__main__":
    main()
