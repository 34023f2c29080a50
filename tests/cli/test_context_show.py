"""``cleveragents context list``, ``show`` and ``search``."""

import json
from datetime import datetime

import pytest

from cleveragents import ContextManager
from support.command import ok, one_line
from support.terminal import on_a_terminal


def test_the_list_shows_what_there_is_and_what_is_wrong(run_context, notes, root):
    ContextManager("broken", root)
    (root / "broken" / "context.json").write_bytes(b"{")
    lines = ok(run_context("list")).splitlines()
    assert lines[0].split() == ["NAME", "UPDATED", "AT", "SIZE", "PROBLEM"]
    assert lines[1].startswith("broken")
    assert "context.json" in lines[1]
    assert lines[2].split()[0] == "notes"
    rows = json.loads(ok(run_context("list", "--format", "json")))
    assert [row["name"] for row in rows] == ["broken", "notes"]
    assert rows[1]["problem"] is None
    assert rows[1]["size"] == (root / "notes" / "messages.jsonl").stat().st_size
    assert datetime.fromisoformat(rows[1]["updated_at"]).tzinfo
    assert [json.loads(line) for line in ok(run_context("list", "--format", "jsonl")).splitlines()] == rows


def test_an_empty_list_says_how_to_begin(run_context):
    done = run_context("list")
    assert ok(done) == ""
    assert "--context" in done.stderr
    assert ok(run_context("list", "--format", "json")) == "[]\n"


def test_a_context_is_shown_with_times_roles_and_state(run_context, notes, home):
    assert ok(run_context("show", "notes")) == (
        "[2026-01-01 00:00:00 UTC] user: Hello Wörld\n"
        "[2026-01-01 00:00:01 UTC] assistant: Hi \x1b[31m there\n"
        'global context: {"stage":"drafting"}\n'
    )
    assert "Hi \\x1b[31m there" in on_a_terminal("context", "show", "notes", home=home)
    shown = ok(run_context("show", "notes", "--last", "1")).splitlines()
    assert len(shown) == 2
    assert 'metadata: {"k":1}' in ok(run_context("show", "notes", "--metadata"))
    assert ok(run_context("show", "notes", "--last", "0")).startswith("global context")


def test_a_context_is_shown_as_json_with_everything_exactly(run_context, notes):
    document = json.loads(ok(run_context("show", "notes", "--format", "json")))
    assert document == {
        "name": "notes",
        "messages": [message.as_dict() for message in notes.messages],
        "state": {},
        "global_context": {"stage": "drafting"},
        "metadata": {},
    }
    lines = ok(run_context("show", "notes", "--format", "jsonl", "--last", "1")).splitlines()
    assert [json.loads(line) for line in lines] == document["messages"][1:]


@pytest.mark.parametrize("last", ["-1", "ten", "1.5"])
def test_c85_an_odd_number_of_messages_is_wrong_usage(run_context, notes, last):
    one_line(run_context("show", "notes", "--last", last), 2)


def test_c04_c05_of_a_damaged_context_what_is_readable_is_shown(run_context, notes):
    (notes.directory / "context.json").write_bytes(b"{")
    done = run_context("show", "notes")
    assert done.returncode == 5
    assert "Hello Wörld" in done.stdout
    assert "context.json" in done.stderr
    document = run_context("show", "notes", "--format", "json")
    assert document.returncode == 5
    assert len(json.loads(document.stdout)["messages"]) == 2
    assert json.loads(document.stdout)["state"] is None
    one_line(run_context("export", "notes", "--output", "-"), 5)
    assert "context.json" in ok(run_context("repair", "notes", "--yes"))
    assert "Hello Wörld" in ok(run_context("show", "notes"))
    (notes.directory / "messages.jsonl").write_bytes(b"\0" * 100)
    (notes.directory / "context.json").write_bytes(b"")
    done = run_context("show", "notes")
    assert done.returncode == 5
    assert len(done.stderr.splitlines()) == 2
    ok(run_context("delete", "notes", "--yes"))
    assert not notes.directory.exists()


def test_a_broken_line_is_told_on_stderr_and_the_rest_is_shown_and_exported(run_context, notes):
    with (notes.directory / "messages.jsonl").open("ab") as file:
        file.write(b"garbage\n" + notes.messages[0].as_line() + b'{"torn')
    done = run_context("show", "notes", "--format", "jsonl")
    assert len(ok(done).splitlines()) == 3
    assert len(done.stderr.splitlines()) == 1
    done = run_context("export", "notes", "--output", "-")
    assert len(json.loads(ok(done))["messages"]) == 3
    assert len(done.stderr.splitlines()) == 1


def test_messages_are_found_by_what_they_say(run_context, notes, root):
    other = ContextManager("other", root)
    other.add_message("user", [{"text": "in parts: WÖRLD"}, {"image": "x"}])
    other.add_message("user", "nothing here")
    ContextManager("broken", root)
    (root / "broken" / "messages.jsonl").write_bytes(b"\0")
    done = run_context("search", "wörld")
    lines = ok(done).splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [["notes", "1", "user"], ["other", "1", "user"]]
    assert "broken" in done.stderr
    rows = [
        json.loads(line)
        for line in ok(run_context("search", "wörld", "--context", "other", "--format", "jsonl")).splitlines()
    ]
    assert [(row["context"], row["number"], row["content"]) for row in rows] == [
        ("other", 1, other.messages[0].content)
    ]
    nothing = run_context("search", "nobody said this", "--context", "notes")
    assert ok(nothing) == ""
    assert "no message" in nothing.stderr
    assert ok(run_context("search", "nobody said this", "--context", "notes", "--format", "json")) == "[]\n"
    one_line(run_context("search", "x", "--context", "broken"), 5)


def test_json_is_safe_for_a_terminal_and_loses_nothing(run_context, notes):
    text = "\x7f \x80 \x9b31m \x9f \u202e é 🎉 \x1b \0"
    notes.add_message("user", text)
    for shown in (run_context("show", "notes", "--format", "json"), run_context("search", "31m", "--format", "jsonl")):
        assert not set(ok(shown)) & set("\x7f\x80\x9b\x9f\u202e\x1b\0")
        assert "\\u009b31m" in shown.stdout
        assert "é 🎉" in shown.stdout
    assert json.loads(run_context("show", "notes", "--format", "json").stdout)["messages"][-1]["content"] == text
