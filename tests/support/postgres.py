"""A real PostgreSQL server for the tests, from a wheel: gone with the process that starts it."""

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import psycopg

PROGRAM = Path(__file__).with_name("postgres_keeper.py")

# Durability is not what these tests are about; a test that is says so and uses SQLite or a benchmark.
SETTINGS = """
fsync = off
full_page_writes = off
max_connections = 60
log_min_messages = fatal
"""


class PostgresServer:
    """A server with data in a folder of its own, reached by a socket in it.

    A keeper, a process of its own, starts and stops it. When this process ends, however that comes about, the pipe to
    the keeper closes, and the keeper ends the server and removes the folder.
    """

    def __init__(self, settings: str = SETTINGS) -> None:
        self._numbers = itertools.count()
        self._keeper = subprocess.Popen(
            [sys.executable, str(PROGRAM), settings],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            # Ctrl-C, and the end of a terminal, are for the tests: the keeper still has the server to stop.
            start_new_session=True,
        )
        heard: dict[str, Any] = json.loads(self._answer())
        self._socket: str = heard["socket"]
        self.process_id: int = heard["process_id"]
        """That of the server itself, as it was first started."""

    def url(self, database: str, user: str = "postgres", password: str = "") -> str:
        login = f"{user}:{password}" if password else user
        return f"postgresql+psycopg://{login}@/{database}?host={quote(self._socket, safe='')}"

    def execute(self, sql: str, url: str | None = None) -> None:
        """Run one statement, on the database of ``url`` if it is given."""
        target = (url or self.url("postgres")).replace("+psycopg", "")
        with psycopg.connect(target, autocommit=True) as connection:
            connection.execute(cast("Any", sql))

    def new_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def restart(self) -> None:
        """Stop the server at once, dropping every connection, and start it again."""
        self._ask("restart")

    def halt(self) -> None:
        """Stop the server at once, until ``restart``."""
        self._ask("stop")

    def stop(self) -> None:
        """Stop the server at once: what it holds is not needed any more."""
        self._keeper.communicate()

    def _ask(self, action: str) -> None:
        assert self._keeper.stdin is not None
        self._keeper.stdin.write(f"{action}\n")
        self._keeper.stdin.flush()
        assert self._answer() == "done\n"

    def _answer(self) -> str:
        assert self._keeper.stdout is not None
        answer = self._keeper.stdout.readline()
        assert answer, "the keeper of PostgreSQL has ended; what it says stands on stderr"
        return answer
