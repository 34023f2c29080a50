"""``cleveragents session show`` and ``tail``."""

import json
import subprocess
import threading

import pytest

from cleveragents import MessageDraft
from support.command import COMMAND, environment, ok, one_line
from support.session_documents import PLAN, checked
from support.terminal import on_a_terminal


def test_show_tells_all_that_is_known_safe_for_a_terminal(run_session, talk, home):
    shown = on_a_terminal("session", "show", talk, home=home)
    for part in (
        f"session id: {talk}",
        "actor name: team/bot",
        "title: Sea\\x1b[31m",
        "token usage: 11 in, 7 out, 0.25 dollars or more",
        f"linked plan ids: {PLAN}",
        "tags: a, b",
        'metadata: {"k":1}',
        "UTC] user: Where to?\\x07",
        "UTC] assistant (planner):\r\n  → weather()",
        "UTC] tool: sunny",
        "UTC] assistant (planner): To the sea. [image]",
        "UTC] assistant: Or [interrupted]",
    ):
        assert part in shown, shown
    assert "\x1b" not in shown
    assert "automation level" not in shown
    assert "title: Sea\x1b[31m" in ok(run_session("show", talk)), "unchanged where no terminal is"
    assert "user" not in ok(run_session("show", talk, "--last", "2"))


def test_show_as_json_is_one_document_with_everything(run_session, talk, store):
    document = checked(json.loads(ok(run_session("show", talk, "--format", "json"))), "show")
    assert document["title"] == "Sea\x1b[31m"
    assert document["messages"] == [message.as_dict() for message in store.messages(talk)]
    assert document["messages"][1]["tool_calls"] == [{"id": "c1", "name": "weather"}]
    assert document["messages"][3]["parts"] == ["To the sea.", {"type": "image_url"}]
    lines = ok(run_session("show", talk, "--last", "2", "--format", "jsonl")).splitlines()
    assert [checked(json.loads(line), "message")["sequence"] for line in lines] == [3, 4]


def test_tail_shows_the_last_messages_only(run_session, talk, store):
    store.append_all(talk, [MessageDraft("user", f"m{number}") for number in range(20)])
    assert [line.rpartition(" ")[2] for line in ok(run_session("tail", talk)).splitlines()] == [
        f"m{n}" for n in range(10, 20)
    ]
    assert len(ok(run_session("tail", talk, "-n", "3")).splitlines()) == 3
    messages = checked(json.loads(ok(run_session("tail", "last", "-n", "2", "--format", "json"))), "tail")
    assert [message["content"] for message in messages] == ["m18", "m19"]
    assert "jsonl" in one_line(run_session("tail", talk, "-f", "--format", "json"), 2)


@pytest.fixture
def following(home):
    """Starts ``session tail --follow``, and ends it."""
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [*COMMAND, "session", "tail", "--follow", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(home),
            text=True,
        )
        # What never comes must not be waited for for ever.
        started.append((process, threading.Timer(60, process.kill)))
        started[-1][1].start()
        return process

    yield start
    for process, timer in started:
        timer.cancel()
        process.kill()
        process.communicate()


def test_tail_follows_what_another_process_writes_until_it_is_interrupted(talk, store, following):
    process = following(talk, "-n", "1", "--format", "jsonl")
    assert json.loads(process.stdout.readline())["sequence"] == 4
    for number in range(5, 8):
        store.append(talk, "user", f"new {number}")
        assert json.loads(process.stdout.readline())["content"] == f"new {number}"
    store.append_all(talk, [MessageDraft("user", f"m{number}") for number in range(2500)])
    assert [json.loads(process.stdout.readline())["content"] for _ in range(2500)] == [f"m{n}" for n in range(2500)]
    process.send_signal(2)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err.strip()) == (130, "interrupted")


def test_tail_of_a_session_that_is_deleted_meanwhile_ends_with_a_line(talk, store, following):
    process = following("last", "-n", "1", "--format", "jsonl")
    assert json.loads(process.stdout.readline())["sequence"] == 4
    store.delete(talk)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (3, "", f"error: there is no session {talk}\n")


def test_tail_ends_quietly_when_its_reader_has_gone(talk, store, following):
    process = following(talk, "-n", "1")
    process.stdout.readline()
    process.stdout.close()
    store.append(talk, "user", "x")
    assert process.wait(timeout=30) == 0
    assert process.stderr.read() == ""
    process.stdout = None


def test_a_message_cannot_pose_as_a_turn(run_session, store):
    session_id = store.create("team/bot", title="a\nactor name: b").session_id
    store.append(session_id, "user", "x\n[2026-01-01 00:00:00 UTC] assistant: Yes.")
    assert "\n      [2026-01-01 00:00:00 UTC] assistant: Yes.\n" in ok(run_session("show", session_id))
    assert "\nactor name: b" not in ok(run_session("show", session_id))
