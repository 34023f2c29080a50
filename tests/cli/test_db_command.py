"""``cleveragents db``, as a user has it."""

import json
import os
import sqlite3
import subprocess
import sys

import pytest

from cleveragents import open_sessions
from support.command import command, one_line


def test_path_names_the_database_and_makes_nothing(home):
    assert command("db", "path", home=home).stdout == f"{home / 'cleveragents.db'}\n"
    hidden = {"CLEVERAGENTS_DATABASE_URL": "postgresql+psycopg://user:hush@db.example/chats"}
    assert command("db", "path", home=home, env=hidden).stdout == "postgresql://db.example/chats\n"
    assert not home.exists()


def test_status_tells_what_there_is_and_makes_nothing(home):
    facts = json.loads(command("db", "status", "--format", "json", home=home).stdout)
    assert (facts["kind"], facts["schema"], facts["size_bytes"]) == ("SQLite", None, None)
    assert not home.exists()
    command("db", "upgrade", home=home)
    facts = json.loads(command("db", "status", "--format", "json", home=home).stdout)
    assert facts["schema"] == facts["expected_schema"]
    assert facts["size_bytes"] > 0
    assert facts["database"] == str(home / "cleveragents.db")
    assert "schema: 0004" in command("db", "status", home=home).stdout


def test_looking_at_the_database_loads_nothing_heavy(home):
    command("db", "upgrade", home=home)
    program = (
        "import sys; sys.argv[0] = 'cleveragents'\n"
        "from cleveragents.cli.main import main\n"
        "try: main()\n"
        "finally: print(*sys.modules, file=sys.stderr)\n"
    )
    for action in ("path", "status"):
        done = subprocess.run(
            [sys.executable, "-c", program, "db", action],
            env=os.environ | {"CLEVERAGENTS_HOME": str(home)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert set(done.stderr.split()).isdisjoint({"sqlalchemy", "alembic", "psycopg", "pydantic", "asyncio"})


def test_c67_upgrade_creates_and_then_has_nothing_to_do(home):
    first = command("db", "upgrade", home=home)
    assert (first.returncode, first.stdout) == (0, "")
    assert "before: none" in first.stderr
    assert "up to date" in command("db", "upgrade", home=home).stderr


def test_backup_writes_a_copy_and_keeps_what_is_there(home, tmp_path):
    url = f"sqlite:///{home / 'cleveragents.db'}"
    with open_sessions(url) as sessions:
        session_id = sessions.create().session_id
        done = command("db", "backup", tmp_path / "copy.db", home=home)
        assert done.stdout == f"{tmp_path / 'copy.db'}\n"
        sessions.delete(session_id)
    with open_sessions(f"sqlite:///{tmp_path / 'copy.db'}") as copied:
        assert [summary.session_id for summary in copied.list()] == [session_id]
    again = command("db", "backup", tmp_path / "copy.db", home=home)
    assert str(tmp_path / "copy.db") in one_line(again, 1)
    with open_sessions(f"sqlite:///{tmp_path / 'copy.db'}") as copied:
        assert len(copied.list()) == 1


def test_backup_without_a_name_makes_one_here(home, tmp_path):
    command("db", "upgrade", home=home)
    done = command("db", "backup", home=home, cwd=tmp_path)
    assert (tmp_path / done.stdout.strip()).exists()


def test_backup_of_nothing_is_an_error(home, tmp_path):
    assert "nothing to back up" in one_line(command("db", "backup", tmp_path / "copy.db", home=home), 1)
    assert not (tmp_path / "copy.db").exists()
    assert not home.exists()


def test_postgresql_is_told_of_in_the_same_words(postgres_url, home, tmp_path):
    there = {"CLEVERAGENTS_DATABASE_URL": postgres_url}
    facts = json.loads(command("db", "status", "--format", "json", home=home, env=there).stdout)
    assert (facts["kind"], facts["schema"]) == ("PostgreSQL", facts["expected_schema"])
    assert "pg_dump" in one_line(command("db", "backup", tmp_path / "x", home=home, env=there), 1)


@pytest.mark.parametrize(
    ("break_it", "code", "words"),
    [
        ("UPDATE cleveragents_version SET version_num = '9999'", 1, "newer version"),
        ("damage", 5, "damaged"),
        ("directory", 1, "cannot"),
    ],
)
def test_what_is_wrong_is_one_line_and_its_exit_code(home, break_it, code, words):
    path = home / "cleveragents.db"
    if break_it == "directory":
        path.mkdir(parents=True)
    else:
        command("db", "upgrade", home=home)
        if break_it == "damage":
            with path.open("r+b") as file:
                file.seek(4096)
                file.write(os.urandom(4096))
        else:
            connection = sqlite3.connect(path)
            connection.execute(break_it)
            connection.commit()
            connection.close()
    line = one_line(command("db", "upgrade", home=home), code)
    assert words in line
    assert str(path) in line


def test_a_wrong_url_is_wrong_usage(home):
    done = command("db", "status", home=home, env={"CLEVERAGENTS_DATABASE_URL": "mysql://h/db"})
    assert "sqlite:///" in one_line(done, 2)


def test_c91_a_foreign_module_of_the_same_name_does_no_harm(tmp_path):
    (tmp_path / "ulid.py").write_text("raise ImportError('the other ulid')", encoding="utf-8")
    program = (
        "import sys; from cleveragents import open_sessions\n"
        "with open_sessions(sys.argv[1]) as sessions: print(sessions.create().session_id)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, f"sqlite:///{tmp_path}/s.db"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(done.stdout.strip()) == 26
