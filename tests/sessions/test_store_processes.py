"""Many processes on one database, and processes that are killed."""

import subprocess
import sys
from urllib.parse import quote

import pytest

from cleveragents import TokenUsage, open_sessions
from cleveragents.sessions.open import open_database
from support.campaign import campaign
from support.killer import run_killer

WRITER = """
import sys; from cleveragents import MessageDraft, open_sessions
url, session_id, name, count = sys.argv[1:]
with open_sessions(url) as sessions:
    sessions.count(session_id)
    print("ready", flush=True); sys.stdin.readline()
    for number in range(int(count)):
        {action}
"""
APPEND = "sessions.append(session_id, 'user', f'{name} {number}')"
APPEND_AND_USE = f"{APPEND}; sessions.add_usage(session_id, 1, 2, 0.001)"
CALL_AND_RESULT = (
    "sessions.append_all(session_id, [MessageDraft('assistant', None, tool_calls=[{'id': name, 'name': 'f'}]), "
    "MessageDraft('tool', f'{name} {number}', tool_call_id=name)])"
)


def write_together(url, session_id, writers, count, action):
    """Run ``writers`` processes that all do ``action`` ``count`` times, starting at the same moment."""
    command = [sys.executable, "-c", WRITER.replace("{action}", action), url, session_id]
    processes = [
        subprocess.Popen(
            [*command, f"writer{number}", str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(writers)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        _, error = process.communicate(timeout=300)
        assert (process.returncode, error) == (0, "")


@pytest.mark.campaign
def test_eight_writers_lose_nothing_and_see_no_error(sessions, database_url):
    each = campaign(short=100, long=250)
    session_id = sessions.create().session_id
    write_together(database_url, session_id, 8, each, APPEND)
    messages = sessions.messages(session_id)
    assert [message.sequence for message in messages] == list(range(8 * each))
    for number in range(8):
        mine = [message.content for message in messages if str(message.content).startswith(f"writer{number} ")]
        assert mine == [f"writer{number} {count}" for count in range(each)]
    assert sessions.count(session_id) == sessions.summary(session_id).message_count == 8 * each


def test_c08_usage_of_every_writer_is_counted(sessions, database_url):
    session_id = sessions.create().session_id
    write_together(database_url, session_id, 8, 10, APPEND_AND_USE)
    whole = sessions.get(session_id)
    assert [message.sequence for message in whole.messages] == list(range(80))
    assert whole.token_usage == TokenUsage(80, 160, 0.08)
    assert len(whole.usage_entries) == 80


def test_c07_c11_what_belongs_together_stays_together(sessions, database_url):
    session_id = sessions.create().session_id
    write_together(database_url, session_id, 2, 50, CALL_AND_RESULT)
    messages = sessions.messages(session_id)
    assert len(messages) == 200
    for call, result in zip(messages[::2], messages[1::2], strict=True):
        assert call.tool_calls[0]["id"] == result.tool_call_id


CREATORS = """
import os, sys; from cleveragents import open_sessions
import alembic.command, alembic.config, sqlalchemy  # so that all reach the database at once
for url in sys.argv[1:]:
    start, go = os.pipe()
    children = []
    for _ in range(8):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                os.close(go)
                os.read(start, 1)
                with open_sessions(url) as sessions:
                    sessions.append(sessions.create().session_id, "user", "first")
                    code = 0
            except Exception as error:
                print(error, file=sys.stderr, flush=True)
            finally:
                os._exit(code)
        children.append(child)
    os.close(go)
    for child in children:
        os.waitpid(child, 0)
    os.close(start)
"""


@pytest.mark.campaign
def test_eight_processes_make_a_new_database_at_once_again_and_again(tmp_path, postgres, postgres_url):
    races = campaign(short=3, long=20)
    for number in range(races):
        postgres.execute(f"CREATE SCHEMA race{number}", postgres_url)
    urls = [f"sqlite:///{tmp_path}/race{number}/sessions.db" for number in range(races)]
    urls += [f"{postgres_url}&options={quote(f'-csearch_path=race{number}')}" for number in range(races)]
    done = subprocess.run([sys.executable, "-c", CREATORS, *urls], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for url in urls:
        with open_sessions(url) as sessions:
            assert [summary.message_count for summary in sessions.list()] == [1] * 8


KILLER = """
import json, sys
from cleveragents import MessageDraft, TokenUsage, open_sessions
from cleveragents.sessions.open import open_database
from support.killer import lives
url, kills = sys.argv[1], int(sys.argv[2])

def write_for_ever(life, acknowledge):
    with open_sessions(url) as sessions:
        while True:
            sessions.append(session_id, "user", "x" * 300); acknowledge(b"1")
            sessions.append_all(session_id, [MessageDraft("user", "y")] * 3); acknowledge(b"3")
            sessions.add_usage(session_id, 1, 1, 0.001); acknowledge(b"u")

with open_sessions(url) as sessions:
    session_id = sessions.create().session_id
stored = used = 0
# After none, it may be killed while it opens the database.
for life, told in lives(kills, write_for_ever, after=(0, 1, 1), rounds=500_000):
    said = told.count(b"1") + 3 * told.count(b"3")
    entered = told.count(b"u")
    with open_sessions(url) as sessions:
        new = sessions.messages(session_id, offset=stored)
        assert [message.sequence for message in new] == list(range(stored, stored + len(new))), "a gap"
        assert said <= len(new) <= said + 3, (said, len(new))
        stored += len(new)
        assert sessions.count(session_id) == stored
        usage = sessions.summary(session_id).token_usage
        assert used + entered <= usage.input_tokens <= used + entered + 1
        assert usage == TokenUsage(usage.input_tokens, usage.input_tokens, usage.input_tokens * 0.001)
        used = usage.input_tokens
    database = open_database(url)
    assert list(database.query("PRAGMA integrity_check", {})) == [{"integrity_check": "ok"}]
    database.close()
with open_sessions(url) as sessions:
    assert len(sessions.get(session_id).usage_entries) == used
print(json.dumps([stored, used]))
"""


@pytest.mark.campaign
def test_kills_lose_nothing_that_was_acknowledged(tmp_path):
    kills = campaign(short=60, long=300)
    stored, used = run_killer(KILLER, f"sqlite:///{tmp_path}/sessions.db", kills, home=tmp_path)
    assert stored > 2 * kills
    assert used > kills / 3


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_sqlite_is_told_to_sync_before_an_append_is_acknowledged(tmp_path, mode):
    # The system calls themselves are looked at in tests/outside.
    url = f"sqlite:///{tmp_path}/sessions.db?journal_mode={mode}"
    with open_sessions(url) as sessions:
        sessions.create()
    database = open_database(url)
    assert list(database.query("PRAGMA synchronous", {})) == [{"synchronous": 2}]
    database.close()


def test_one_process_uses_one_sqlite_library(tmp_path):
    program = (
        "import sys; from cleveragents import open_sessions\n"
        "with open_sessions(sys.argv[1]) as sessions: sessions.create()\n"
        "print(sum(name in sys.modules for name in ('_sqlite3', 'pysqlite3._sqlite3')))\n"
    )
    url = f"sqlite:///{tmp_path}/sessions.db"
    done = subprocess.run([sys.executable, "-c", program, url], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
