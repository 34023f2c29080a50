"""docs/scaling.md: what it says to run, on real databases."""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from cleveragents import MessageDraft, errors, open_sessions
from support.command import environment
from support.pages import page

PAGE = page("scaling.md")

# As jq does with -r .session_id, for machines without it.
JQ = "import json, sys\nfor line in sys.stdin: print(json.loads(line)['session_id'])"


def test_sessions_move_from_sqlite_to_postgresql_as_the_page_says(postgres, tmp_path):
    url = postgres.new_database()
    with open_sessions(f"sqlite:///{tmp_path / 'home' / 'cleveragents.db'}") as old:
        for number in range(3):
            old.append(old.create("team/bot", title=f"t{number}").session_id, "user", "é\x00🎉")
        expected = [(summary.title, old.messages(summary.session_id)) for summary in old.list()]
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "jq").write_text(f"#!{sys.executable}\n{JQ}\n", encoding="utf-8")
    (bin_ / "jq").chmod(0o755)
    (block,) = PAGE.blocks("console")
    script = "\n".join(line[2:] for line in block.splitlines())
    path = f"{bin_}:{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-ec", script],
        env=environment(tmp_path / "home", {"NEW": url, "PATH": path}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    with open_sessions(url) as new:
        found = [(summary.title, new.messages(summary.session_id)) for summary in new.list()]
    assert found == expected


def test_messages_can_be_partitioned_by_session_as_the_page_says(postgres):
    url = postgres.new_database()
    with open_sessions(url) as sessions:
        ids = [sessions.create("team/bot").session_id for _ in range(8)]
        for each in ids:
            sessions.append_all(each, [MessageDraft("user", text) for text in "abc"])
        before = [sessions.get(each) for each in ids]
    (sql,) = PAGE.blocks("sql")
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(sql.encode())
    with open_sessions(url) as sessions:
        assert [sessions.get(each) for each in ids] == before
        for each in ids:
            assert sessions.append(each, "user", "d").sequence == 3
            assert [message.content for message in sessions.last_messages(each, 2)] == ["c", "d"]
            sessions.verify(each)
        made = sessions.create().session_id
        sessions.append(made, "user", "x")
        sessions.delete(ids[0])
        with pytest.raises(errors.SessionNotFoundError):
            sessions.messages(ids[0])
        assert len(sessions.list()) == 8
        assert sessions.import_(sessions.export(made)).message_count == 1
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        rows = connection.execute("SELECT tableoid::regclass::text, count(*) FROM messages GROUP BY 1").fetchall()
    assert sum(count for _, count in rows) == 7 * 4 + 2
    assert len(rows) > 1
    assert {name for name, _ in rows} <= {f"messages_{number}" for number in range(4)}
