"""``cleveragents context rename``, ``copy``, ``clear``, ``delete`` and ``repair``."""

import contextlib
import os
import pty
import signal
import subprocess

import pytest

from cleveragents import ContextManager, list_contexts
from support.command import COMMAND, environment, ok, one_line


def test_renaming_and_copying(run_context, notes, root):
    ok(run_context("rename", "notes", "old notes"))
    ok(run_context("copy", "old notes", "new notes"))
    assert list_contexts(root) == ["new notes", "old notes"]
    assert len(ContextManager.open("new notes", root).messages) == 2
    for name in ("new notes", "NEW NOTES"):
        assert name in one_line(run_context("rename", "old notes", name), 1)
        line = one_line(run_context("copy", "old notes", name), 1)
        assert name in line
        assert "--force" not in line, "there is no such option"
    one_line(run_context("rename", "old notes", "../x"), 2)
    assert list_contexts(root) == ["new notes", "old notes"]


def test_a_context_in_use_is_not_renamed(run_context, notes):
    with notes.turn():
        assert "in use" in one_line(run_context("rename", "notes", "x"), 6)


def test_a_context_in_use_is_not_cleared(run_context, notes):
    with notes.turn():
        assert "in use" in one_line(run_context("clear", "notes", "--yes"), 6)
        assert len(notes.messages) == 2
        notes.clear()
        assert notes.messages == [], "who has the turn may"


def test_clearing_and_deleting(run_context, notes):
    ok(run_context("clear", "notes", "--yes"))
    assert notes.messages == []
    assert notes.global_context == {"stage": "drafting"}
    ok(run_context("clear", "notes", "--everything", "--yes"))
    assert notes.global_context == {}
    ok(run_context("delete", "notes", "--yes"))
    assert not notes.directory.exists()


@pytest.mark.parametrize("arguments", [["clear", "notes"], ["delete", "notes"]], ids=" ".join)
def test_without_a_terminal_to_ask_on_nothing_is_removed_unless_told(run_context, notes, arguments):
    assert "--yes" in one_line(run_context(*arguments), 2)
    assert len(notes.messages) == 2


@pytest.mark.parametrize(("answer", "code"), [("n\n", 7), ("\n", 7), ("y\n", 0), ("Ctrl-C", 130), ("\x04", 130)])
def test_on_a_terminal_it_asks_first(notes, home, answer, code):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "context", "delete", "notes"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home),
    )
    assert process.stderr is not None
    asked = process.stderr.read(len("Delete context 'notes'"))
    assert asked == b"Delete context 'notes'"
    if answer == "Ctrl-C":
        # Again if need be: a signal that arrives just before the process begins to read does not end the reading.
        while process.poll() is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
    else:
        os.write(ours, answer.encode())
    out, err = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert process.returncode == code, err
    assert out == b""
    assert notes.directory.exists() == bool(code)


def test_repair_shows_what_it_would_do_and_does_it_when_told(run_context, notes):
    assert "needs no repair" in run_context("repair", "notes").stderr
    messages = notes.directory / "messages.jsonl"
    damaged = b"garbage\n" + messages.read_bytes() + b"{torn"
    messages.write_bytes(damaged)
    done = run_context("repair", "notes")
    assert done.returncode == 2
    assert "2 of 4 lines" in done.stdout
    assert "--yes" in done.stderr
    assert messages.read_bytes() == damaged
    assert "2 of 4 lines" in ok(run_context("repair", "notes", "--yes"))
    assert (notes.directory / "messages.jsonl.damaged").read_bytes() == b"garbage\n{torn\n"
    assert len(notes.messages) == 2
    assert run_context("show", "notes").stderr == ""


@pytest.mark.parametrize("name", ["messages.jsonl", "context.json"])
def test_repair_names_what_it_cannot_move_and_says_what_to_do(run_context, notes, name):
    path = notes.directory / name
    path.unlink()
    advice = "is not a regular file; move it away, then 'cleveragents context repair' makes a new one"
    for number, make in enumerate([path.mkdir, lambda: os.mkfifo(path)]):
        make()
        for arguments in (["repair", "notes", "--yes"], ["show", "notes", "--last", "1"]):
            done = run_context(*arguments)
            assert done.returncode == 5
            assert done.stderr == f"error: {path} {advice}\n"
        path.rename(notes.directory / f"{name}.{number}")
    ok(run_context("repair", "notes", "--yes"))
    ok(run_context("show", "notes"))


def test_a_folder_whose_name_is_none_is_mended_by_a_rename(run_context, notes, root):
    for number, (folder, typed, new) in enumerate([("a:b", "a:b", "a b"), ("cafe\u0301", "caf\xe9", "caf\xe9")]):
        notes.copy(f"copy {number}").directory.rename(root / folder)
        assert "context rename" in ok(run_context("list"))
        ok(run_context("rename", typed, new))
        assert ContextManager.open(new, root).messages == notes.messages
    assert "context rename" not in ok(run_context("list"))
    assert "there is no context 'nots'" in one_line(run_context("rename", "nots", "x"), 3)
