"""Databases that came from elsewhere: what is in them is data, and never does anything; what is no data is damage."""

import signal
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from cleveragents import SessionDamagedError, open_sessions
from cleveragents.sessions.open import open_database
from support.command import command, one_line

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT {} FROM n"


@pytest.fixture
def path(tmp_path):
    """A SQLite database with one session of two messages."""
    path = tmp_path / "home" / "cleveragents.db"
    path.parent.mkdir()
    with open_sessions(f"sqlite:///{path}") as sessions:
        session_id = sessions.create("local/agents", title="Mine", tags=["a"]).session_id
        sessions.append(session_id, "user", "Hello")
        sessions.append(session_id, "assistant", "Hi")
        sessions.add_usage(session_id, 1, 2, 0.5, llm="openai:any")
        sessions.link_plan(session_id, "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    return path


def change(path, *statements):
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def rewrite(path, old, new):
    """Change the definition of ``sessions``, as only another program does."""
    change(
        path,
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_master SET sql = replace(sql, '{old}', '{new}') WHERE name = 'sessions'",  # noqa: S608
        "PRAGMA writable_schema = RESET",
    )


FOREIGN = {
    "trigger": ("CREATE TRIGGER spy AFTER INSERT ON messages BEGIN DELETE FROM sessions; END", "trigger 'spy'"),
    "view": ("CREATE VIEW every AS SELECT * FROM messages", "view 'every'"),
    "virtual": ("DROP TABLE session_tags; CREATE VIRTUAL TABLE session_tags USING fts5(session_id, tag)", "virtual"),
    "computed": (
        "ALTER TABLE sessions ADD COLUMN bomb TEXT AS (hex(zeroblob(500000000)))",
        "computed column of sessions 'bomb'",
    ),
}


@pytest.mark.parametrize(("statements", "named"), FOREIGN.values(), ids=FOREIGN)
def test_what_would_run_in_our_queries_is_refused_by_name(path, tmp_path, statements, named):
    change(path, *statements.split("; ") if "VIRTUAL" in statements else [statements])
    before = path.read_bytes()
    for arguments in (["session", "list"], ["db", "status"], ["session", "create"]):
        line = one_line(command(*arguments, home=tmp_path / "home"), 5)
        assert named in line
        assert str(path) in line
    assert path.read_bytes() == before


@pytest.mark.parametrize("table", ["sessions", "cleveragents_version"])
def test_a_view_in_the_place_of_a_table_is_no_empty_store_and_never_runs(path, tmp_path, table):
    columns = "i AS id" if table == "sessions" else "i AS version_num"
    change(path, f"DROP TABLE {table}", f"CREATE VIEW {table} AS {ENDLESS.format(columns)} WHERE i < 0")
    assert f"view '{table}'" in one_line(command("session", "list", home=tmp_path / "home"), 5)


PROGRAM = """
import sys
from pathlib import Path
from cleveragents.sessions.open import open_database
database = open_database(sys.argv[1])
database.query("SELECT 1", {})
print("begun", flush=True)
database.query(sys.argv[2], {})
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_query_without_an_end_is_ended_by_a_signal(path, number):
    handler = "import signal; signal.signal(signal.SIGTERM, signal.default_int_handler)\n"
    child = subprocess.Popen(
        [sys.executable, "-c", handler + textwrap.dedent(PROGRAM), f"sqlite:///{path}", ENDLESS.format("count(*)")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "begun\n"
    child.send_signal(number)
    _, told = child.communicate(timeout=60)
    assert told.splitlines()[-1] == "KeyboardInterrupt"


ODD = {
    "version": ("UPDATE cleveragents_version SET version_num = x'ff00'", "session list"),
    "metadata": ("UPDATE sessions SET metadata = '[1]'", "session show last"),
    "metadata list": ("UPDATE sessions SET metadata = 'x'", "session list"),
    "time": ("UPDATE sessions SET updated_at = 9223372036854775807", "session list"),
    "message's time": ("UPDATE messages SET created_at = -9223372036854775808", "session show last"),
    "title": ("UPDATE sessions SET title = CAST(x'ff' AS TEXT)", "session list"),
    "content": ("UPDATE messages SET content = CAST(x'ff' AS TEXT)", "session show last"),
    "role": ("UPDATE messages SET role = 'king'", "session show last"),
    "plan": ("UPDATE linked_plans SET plan_id = 'x'", "session list"),
    "cost": ("UPDATE sessions SET cost_nano = -5", "session list"),
    "day": ("UPDATE sessions SET created_at = -9223372036854775808", "session stats"),
    "activity": ("UPDATE sessions SET activity = -5", "session list"),
    "count": ("UPDATE sessions SET message_count = -5", "session list"),
}


@pytest.mark.parametrize(("statement", "arguments"), ODD.values(), ids=ODD)
def test_odd_values_are_damage_and_never_no_sessions(path, tmp_path, statement, arguments):
    change(path, "PRAGMA ignore_check_constraints = ON", statement)
    done = command(*arguments.split(), home=tmp_path / "home")
    # ``show`` has shown what can be read before it comes to what cannot.
    (line,) = done.stderr.splitlines()
    assert (done.returncode, "damaged" in line, "sessions" in done.stdout) == (5, True, False)


def test_a_table_that_takes_any_kind_of_value_is_refused(path, tmp_path):
    rewrite(path, "STRICT", "")
    # What is no number sorts behind every number, so that a list would find nothing.
    change(path, "UPDATE sessions SET activity = 'x'")
    assert "'sessions'" in one_line(command("session", "list", home=tmp_path / "home"), 5)


def test_nothing_where_there_is_something_in_ours_is_damage(path, tmp_path):
    rewrite(path, "metadata TEXT NOT NULL", "metadata TEXT")
    change(path, "UPDATE sessions SET metadata = NULL")
    assert "damaged" in one_line(command("session", "list", home=tmp_path / "home"), 5)


def test_a_view_in_a_postgresql_database_is_refused(postgres):
    url = postgres.new_database()
    postgres.execute("CREATE VIEW sessions AS SELECT 1 AS id", url)
    database = open_database(url)
    with pytest.raises(SessionDamagedError, match="sessions in the database is no table"):
        database.upgrade()
    database.close()
