"""A SQLite file that a stranger gave: what it holds beside tables is refused by name, and it can always be left."""

import os
import signal
import sqlite3
import subprocess
import sys

import pytest

from cleveragents import errors, open_sessions

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS found FROM n"


@pytest.fixture
def stored(tmp_path):
    """A database with one session, and its URL."""
    url = f"sqlite:///{tmp_path}/s.db"
    with open_sessions(url) as sessions:
        sessions.create()
    return tmp_path / "s.db", url


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TRIGGER spy AFTER INSERT ON sessions BEGIN DELETE FROM messages; END",
        f"ALTER TABLE sessions RENAME TO old; CREATE VIEW spy AS {ENDLESS}",
        f"DROP TABLE cleveragents_version; CREATE VIEW cleveragents_version AS {ENDLESS}",
    ],
)
def test_triggers_and_views_are_refused_by_name_and_never_run(stored, script):
    path, url = stored
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    with open_sessions(url) as sessions:
        for call in (sessions.list, sessions.create):
            with pytest.raises(errors.SessionDamagedError, match=r"spy|cleveragents_version") as refusal:
                call()
            assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("column", ["title", "metadata"])
def test_text_that_is_not_utf_8_is_damage(stored, column):
    path, url = stored
    connection = sqlite3.connect(path)
    connection.execute(f"UPDATE sessions SET {column} = CAST(x'ff' AS TEXT)")  # noqa: S608 - our own
    connection.commit()
    connection.close()
    with open_sessions(url) as sessions, pytest.raises(errors.SessionDamagedError):
        sessions.list()


def test_an_endless_statement_ends_at_a_ctrl_c(stored):
    program = (
        "import sys\n"
        "from cleveragents.sessions.open import open_database\n"
        "database = open_database(sys.argv[1])\n"
        "database.status()\n"
        "try:\n"
        "    print('at work', flush=True)\n"
        "    database.query(sys.argv[2], {})\n"
        "except KeyboardInterrupt: print('ended', flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program, stored[1], ENDLESS], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        os.kill(process.pid, signal.SIGINT)
        assert process.stdout.read() == "ended\n"
