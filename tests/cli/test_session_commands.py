"""What holds for every ``cleveragents session`` command."""

import json
import re
import sqlite3
import subprocess

import pytest

from cleveragents import MessageDraft
from cleveragents.cli.session.group import COMMANDS
from support.command import C_LOCALE, COMMAND, command, environment, ok, one_line


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(run_session, name, home):
    shown = ok(run_session(name, "--help"))
    assert f"cleveragents session {name} " in shown.partition("Example:")[2] + " "
    assert not home.exists()


def test_the_group_tells_of_every_command(run_session):
    shown = ok(run_session("--help"))
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", shown, re.MULTILINE)


def test_where_there_is_no_session_looking_says_how_to_make_one_and_makes_nothing(run_session, home):
    done = run_session("list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "session create" in done.stderr
    assert ok(run_session("list", "--format", "json")) == "[]\n"
    assert ok(run_session("list", "--format", "jsonl")) == ""
    assert "session create" in one_line(run_session("show", "last"), 3)
    assert "session create" in run_session("stats").stderr
    assert not home.exists()


@pytest.mark.parametrize("url", ["mysql://h/d", "sqlite://", "postgresql+psycopg://127.0.0.1:1/d", "nonsense"])
def test_a_database_that_cannot_be_used_is_one_line(run_session, url):
    code = 1 if url.startswith("postgresql") else 2
    line = one_line(run_session("list", env={"CLEVERAGENTS_DATABASE_URL": url}), code)
    assert "hush" not in line


def test_c104_a_reader_that_has_seen_enough_ends_the_output_quietly(store, talk, home, tmp_path):
    store.append_all(talk, [MessageDraft("user", "x" * 100)] * 5000)
    shell = " ".join(COMMAND)
    for pipeline in (
        "session list | true",
        "session list --format json | true",
        f"session show {talk} | head -1",
        f"session show {talk} --format jsonl | head -1",
        "session show last --format json | head -c 1",
        "session tail last -n 5000 | head -1",
        "session export last --output - | head -c 1",
        "session stats | true",
        "session tag last | true",
        f"session verify {talk} | true",
        "session create | true",
    ):
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {shell} {pipeline}"],
            capture_output=True,
            text=True,
            env=environment(home, {"PYTHONUNBUFFERED": "1"}),
            cwd=tmp_path,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), pipeline


def test_c106_text_is_the_same_in_a_locale_that_is_not_utf_8(run_session, store):
    session_id = ok(run_session("create", "--title", "é 🎉", "--tag", "ж", env=C_LOCALE)).strip()
    assert store.summary(session_id).title == "é 🎉"
    assert store.summary(session_id).tags == ["ж"]
    assert ok(run_session("list", env=C_LOCALE)).isascii()
    (found,) = json.loads(ok(run_session("list", "--tag", "ж", "--format", "json", env=C_LOCALE)))
    assert found["title"] == "é 🎉"
    ok(run_session("rename", session_id, "ä", env=C_LOCALE))
    assert store.summary(session_id).title == "ä"


def test_rows_without_a_session_and_damaged_sessions_are_found(run_session, store, home):
    whole, damaged = store.create().session_id, store.create().session_id
    for session_id in (whole, damaged):
        store.append(session_id, "user", "Hello")
    assert ok(run_session("verify", "--all")) == "all 2 sessions are whole\n"
    assert "rows without" not in ok(command("db", "status", home=home))
    connection = sqlite3.connect(home / "cleveragents.db", isolation_level=None)
    connection.execute("UPDATE messages SET sequence = 7 WHERE session_id = ?", [damaged])
    connection.execute("INSERT INTO session_tags VALUES ('01ARZ3NDEKTSV4RRFFQ69G5FAV', 'left')")
    connection.close()
    done = run_session("verify", "--all")
    assert (done.returncode, done.stdout) == (5, "1 sessions are whole; 2 faults\n")
    first, second = done.stderr.splitlines()
    assert damaged in first
    assert "1 in session_tags" in second
    assert "rows without a session: 1 in session_tags" in ok(command("db", "status", home=home))
    one_line(run_session("verify"), 2)
    one_line(run_session("verify", whole, "--all"), 2)
