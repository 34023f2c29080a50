"""``cleveragents context`` as its users have it: processes of their own, results on stdout, all else on stderr."""

import contextlib
import json
import os
import pty
import signal
import subprocess
from datetime import UTC, datetime

import pytest

from cleveragents import ContextManager, list_contexts
from support.command import COMMAND, command, environment, one_line


@pytest.fixture
def root(tmp_path):
    return tmp_path / "home" / "contexts"


@pytest.fixture
def run(tmp_path):
    def running(*arguments, **options):
        options.setdefault("cwd", tmp_path)
        return command("context", *arguments, home=tmp_path / "home", **options)

    return running


@pytest.fixture
def notes(root):
    context = ContextManager("notes", root)
    context.add_message("user", "Hello Wörld", {"k": 1}, datetime(2026, 1, 1, tzinfo=UTC))
    context.add_message("assistant", "Hi \x1b[31m there", None, datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC))
    context.update_global_context({"stage": "drafting"})
    return context


def ok(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


COMMANDS = ["list", "show", "search", "rename", "copy", "clear", "delete", "export", "import", "repair", "path"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(run, name):
    shown = ok(run(name, "--help"))
    assert "Example: " in shown
    assert "cleveragents context" in shown or f"context {name}" in shown


def test_the_list_shows_what_there_is_and_what_is_wrong(run, notes, root):
    ContextManager("broken", root)
    (root / "broken" / "context.json").write_bytes(b"{")
    lines = ok(run("list")).splitlines()
    assert lines[0].split() == ["NAME", "UPDATED", "AT", "SIZE", "PROBLEM"]
    assert lines[1].startswith("broken")
    assert "context.json" in lines[1]
    assert lines[2].split()[0] == "notes"
    rows = json.loads(ok(run("list", "--format", "json")))
    assert [row["name"] for row in rows] == ["broken", "notes"]
    assert rows[1]["problem"] is None
    assert rows[1]["size"] == (root / "notes" / "messages.jsonl").stat().st_size
    assert datetime.fromisoformat(rows[1]["updated_at"]).tzinfo
    assert [json.loads(line) for line in ok(run("list", "--format", "jsonl")).splitlines()] == rows


def test_an_empty_list_says_how_to_begin(run):
    done = run("list")
    assert ok(done) == ""
    assert "--context" in done.stderr
    assert ok(run("list", "--format", "json")) == "[]\n"


def test_a_context_is_shown_with_times_roles_and_state(run, notes):
    assert ok(run("show", "notes")) == (
        "[2026-01-01 00:00:00 UTC] user: Hello Wörld\n"
        "[2026-01-01 00:00:01 UTC] assistant: Hi \\x1b[31m there\n"
        'global context: {"stage":"drafting"}\n'
    )
    shown = ok(run("show", "notes", "--last", "1")).splitlines()
    assert len(shown) == 2
    assert 'metadata: {"k":1}' in ok(run("show", "notes", "--metadata"))
    assert ok(run("show", "notes", "--last", "0")).startswith("global context")


def test_a_context_is_shown_as_json_with_everything_exactly(run, notes):
    document = json.loads(ok(run("show", "notes", "--format", "json")))
    assert document == {
        "name": "notes",
        "messages": [message.as_dict() for message in notes.messages],
        "state": {},
        "global_context": {"stage": "drafting"},
        "metadata": {},
    }
    lines = ok(run("show", "notes", "--format", "jsonl", "--last", "1")).splitlines()
    assert [json.loads(line) for line in lines] == document["messages"][1:]


@pytest.mark.parametrize("last", ["-1", "ten", "1.5"])
def test_c85_an_odd_number_of_messages_is_wrong_usage(run, notes, last):
    one_line(run("show", "notes", "--last", last), 2)


def test_c04_c05_of_a_damaged_context_what_is_readable_is_shown(run, notes):
    (notes.directory / "context.json").write_bytes(b"{")
    done = run("show", "notes")
    assert done.returncode == 5
    assert "Hello Wörld" in done.stdout
    assert "context.json" in done.stderr
    document = run("show", "notes", "--format", "json")
    assert document.returncode == 5
    assert len(json.loads(document.stdout)["messages"]) == 2
    assert json.loads(document.stdout)["state"] is None
    one_line(run("export", "notes", "--output", "-"), 5)
    assert "context.json" in ok(run("repair", "notes", "--yes"))
    assert "Hello Wörld" in ok(run("show", "notes"))
    (notes.directory / "messages.jsonl").write_bytes(b"\0" * 100)
    (notes.directory / "context.json").write_bytes(b"")
    done = run("show", "notes")
    assert done.returncode == 5
    assert len(done.stderr.splitlines()) == 2
    ok(run("delete", "notes", "--yes"))
    assert not notes.directory.exists()


def test_a_broken_line_is_told_on_stderr_and_the_rest_is_shown_and_exported(run, notes):
    with (notes.directory / "messages.jsonl").open("ab") as file:
        file.write(b"garbage\n" + notes.messages[0].as_line() + b'{"torn')
    done = run("show", "notes", "--format", "jsonl")
    assert len(ok(done).splitlines()) == 3
    assert len(done.stderr.splitlines()) == 1
    done = run("export", "notes", "--output", "-")
    assert len(json.loads(ok(done))["messages"]) == 3
    assert len(done.stderr.splitlines()) == 1


def test_repair_shows_what_it_would_do_and_does_it_when_told(run, notes):
    assert "needs no repair" in run("repair", "notes").stderr
    messages = notes.directory / "messages.jsonl"
    damaged = b"garbage\n" + messages.read_bytes() + b"{torn"
    messages.write_bytes(damaged)
    done = run("repair", "notes")
    assert done.returncode == 2
    assert "2 of 4 lines" in done.stdout
    assert "--yes" in done.stderr
    assert messages.read_bytes() == damaged
    assert "2 of 4 lines" in ok(run("repair", "notes", "--yes"))
    assert (notes.directory / "messages.jsonl.damaged").read_bytes() == b"garbage\n{torn\n"
    assert len(notes.messages) == 2
    assert run("show", "notes").stderr == ""


def test_messages_are_found_by_what_they_say(run, notes, root):
    other = ContextManager("other", root)
    other.add_message("user", [{"text": "in parts: WÖRLD"}, {"image": "x"}])
    other.add_message("user", "nothing here")
    ContextManager("broken", root)
    (root / "broken" / "messages.jsonl").write_bytes(b"\0")
    done = run("search", "wörld")
    lines = ok(done).splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [["notes", "1", "user"], ["other", "1", "user"]]
    assert "broken" in done.stderr
    rows = [
        json.loads(line) for line in ok(run("search", "wörld", "--context", "other", "--format", "jsonl")).splitlines()
    ]
    assert [(row["context"], row["number"], row["content"]) for row in rows] == [
        ("other", 1, other.messages[0].content)
    ]
    nothing = run("search", "nobody said this", "--context", "notes")
    assert ok(nothing) == ""
    assert "no message" in nothing.stderr
    assert ok(run("search", "nobody said this", "--context", "notes", "--format", "json")) == "[]\n"
    one_line(run("search", "x", "--context", "broken"), 5)


def test_renaming_and_copying(run, notes, root):
    ok(run("rename", "notes", "old notes"))
    ok(run("copy", "old notes", "new notes"))
    assert list_contexts(root) == ["new notes", "old notes"]
    assert len(ContextManager.open("new notes", root).messages) == 2
    for name in ("new notes", "NEW NOTES"):
        assert name in one_line(run("rename", "old notes", name), 1)
        line = one_line(run("copy", "old notes", name), 1)
        assert name in line
        assert "--force" not in line, "there is no such option"
    one_line(run("rename", "old notes", "../x"), 2)
    assert list_contexts(root) == ["new notes", "old notes"]


def test_a_context_in_use_is_not_renamed(run, notes):
    with notes.turn():
        assert "in use" in one_line(run("rename", "notes", "x"), 6)


def test_a_context_in_use_is_not_cleared(run, notes):
    with notes.turn():
        assert "in use" in one_line(run("clear", "notes", "--yes"), 6)
        assert len(notes.messages) == 2
        notes.clear()
        assert notes.messages == [], "who has the turn may"


def test_json_is_safe_for_a_terminal_and_loses_nothing(run, notes):
    text = "\x7f \x80 \x9b31m \x9f \u202e é 🎉 \x1b \0"
    notes.add_message("user", text)
    for shown in (run("show", "notes", "--format", "json"), run("search", "31m", "--format", "jsonl")):
        assert not set(ok(shown)) & set("\x7f\x80\x9b\x9f\u202e\x1b\0")
        assert "\\u009b31m" in shown.stdout
        assert "é 🎉" in shown.stdout
    assert json.loads(run("show", "notes", "--format", "json").stdout)["messages"][-1]["content"] == text


@pytest.mark.parametrize("name", ["messages.jsonl", "context.json"])
def test_repair_names_what_it_cannot_move_and_says_what_to_do(run, notes, name):
    path = notes.directory / name
    path.unlink()
    advice = "is not a regular file; move it away, then 'cleveragents context repair' makes a new one"
    for number, make in enumerate([path.mkdir, lambda: os.mkfifo(path)]):
        make()
        for arguments in (["repair", "notes", "--yes"], ["show", "notes", "--last", "1"]):
            done = run(*arguments)
            assert done.returncode == 5
            assert done.stderr == f"error: {path} {advice}\n"
        path.rename(notes.directory / f"{name}.{number}")
    ok(run("repair", "notes", "--yes"))
    ok(run("show", "notes"))


def test_clearing_and_deleting(run, notes):
    ok(run("clear", "notes", "--yes"))
    assert notes.messages == []
    assert notes.global_context == {"stage": "drafting"}
    ok(run("clear", "notes", "--everything", "--yes"))
    assert notes.global_context == {}
    ok(run("delete", "notes", "--yes"))
    assert not notes.directory.exists()


@pytest.mark.parametrize("arguments", [["clear", "notes"], ["delete", "notes"]], ids=" ".join)
def test_without_a_terminal_to_ask_on_nothing_is_removed_unless_told(run, notes, arguments):
    assert "--yes" in one_line(run(*arguments), 2)
    assert len(notes.messages) == 2


@pytest.mark.parametrize(("answer", "code"), [("n\n", 7), ("\n", 7), ("y\n", 0), ("Ctrl-C", 130), ("\x04", 130)])
def test_on_a_terminal_it_asks_first(notes, tmp_path, answer, code):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "context", "delete", "notes"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path / "home"),
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


def test_c17_c64_an_export_has_a_name_of_its_own_in_the_current_folder(run, notes, root, tmp_path):
    for name in ("plan.v1", "plan.v2", "a b"):
        ContextManager(name, root).add_message("user", name)
        assert ok(run("export", name)) == f"{name}.context.json\n"
        assert json.loads((tmp_path / f"{name}.context.json").read_bytes())["messages"][0]["content"] == name
    assert "exists already" in one_line(run("export", "plan.v1"), 1)
    assert ok(run("export", "plan.v1", "--force")) == "plan.v1.context.json\n"
    assert json.loads(ok(run("export", "notes", "--output", "-")))["name"] == "notes"
    for output in (tmp_path, tmp_path / "no" / "folder.json"):
        one_line(run("export", "notes", "--output", output), 1)
    assert ok(run("export", "notes", "--output", tmp_path / "x.json")) == f"{tmp_path / 'x.json'}\n"


def test_c22_importing_under_a_taken_name_needs_force(run, notes, root, tmp_path):
    ok(run("export", "notes"))
    before = ContextManager("other", root)
    before.add_message("user", "theirs")
    line = one_line(run("import", "notes.context.json", "--name", "other"), 1)
    assert "'other'" in line
    assert "--force" in line
    assert "--force" not in one_line(run("import", "notes.context.json", "--name", "Other"), 1), "it would not help"
    one_line(run("import", "notes.context.json"), 1)
    assert len(before.messages) == 1
    ok(run("import", "notes.context.json", "--name", "other", "--force"))
    assert ContextManager.open("other", root).messages == notes.messages
    ok(run("import", "notes.context.json", "--name", "third"))
    ok(run("delete", "notes", "--yes"))
    ok(run("import", "notes.context.json"))
    assert list_contexts(root) == ["notes", "other", "third"]
    file = tmp_path / "notes.context.json"
    file.write_bytes(file.read_bytes().replace(b"Hello", b"Hallo"))
    assert "checksum" in one_line(run("import", "notes.context.json", "--name", "fourth"), 5)
    assert "nothing.json" in one_line(run("import", "nothing.json"), 3)
    assert list_contexts(root) == ["notes", "other", "third"]


def test_the_path_is_the_folder(run, notes):
    assert ok(run("path", "notes")) == f"{notes.directory}\n"


@pytest.mark.parametrize("name", COMMANDS[1:])
def test_an_unknown_context_is_not_found_and_not_made(run, root, name, tmp_path):
    arguments = {
        "search": ["x", "--context", "nobody"],
        "rename": ["nobody", "else"],
        "copy": ["nobody", "else"],
        "clear": ["nobody", "--yes"],
        "delete": ["nobody", "--yes"],
        "import": [str(tmp_path)],
    }.get(name, ["nobody"])
    line = one_line(run(name, *arguments), 2 if name == "import" else 3)
    assert name == "import" or "'nobody'" in line
    assert not root.exists()


@pytest.mark.parametrize("name", ["../x", "a/b", "", "con", "x" * 300, "a\nb"])
def test_a_bad_name_is_wrong_usage(run, root, name):
    one_line(run("show", name), 2)
    assert not root.exists()


def test_c104_a_reader_that_has_seen_enough_ends_the_output_quietly(notes, root, tmp_path):
    line = notes.messages[0].as_line()
    (notes.directory / "messages.jsonl").write_bytes(line * 5000)
    shell = " ".join(COMMAND)
    for pipeline in (
        "context show notes | head -1",
        "context show notes --format jsonl | head -1",
        "context show notes --format json | head -c 1",
        "context search hello | head -1",
        "context list | true",
        "context export notes --output - | head -c 1",
        "context path notes | true",
    ):
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {shell} {pipeline}"],
            capture_output=True,
            text=True,
            env=environment(tmp_path / "home", {"PYTHONUNBUFFERED": "1"}),
            check=False,
        )
        assert done.stderr == "", pipeline
        assert done.returncode == 0, pipeline


C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_c28_names_and_texts_are_the_same_in_a_locale_that_is_not_utf_8(run, root, tmp_path):
    context = ContextManager("Привет", root)
    context.add_message("user", "é 🎉")
    assert json.loads(ok(run("show", "Привет", "--format", "json", env=C_LOCALE)))["messages"][0]["content"] == "é 🎉"
    assert json.loads(ok(run("list", "--format", "json", env=C_LOCALE)))[0]["name"] == "Привет"
    assert json.loads(ok(run("search", "É", "--format", "json", env=C_LOCALE)))[0]["content"] == "é 🎉"
    assert "? ?" in ok(run("show", "Привет", env=C_LOCALE))
    exported = ok(run("export", "Привет", "--output", "-", env=C_LOCALE))
    assert exported == ok(run("export", "Привет", "--output", "-"))
    ok(run("copy", "Привет", "é", env=C_LOCALE))
    ok(run("export", "é", env=C_LOCALE))
    ok(run("import", "é.context.json", "--name", "ö", env=C_LOCALE))
    ok(run("rename", "é", "ä", env=C_LOCALE))
    assert list_contexts(root) == ["Привет", "ä", "ö"] or list_contexts(root) == ["ä", "ö", "Привет"]
    assert one_line(run("show", "ж", env=C_LOCALE), 3).isascii()


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1"])
def test_c106_a_console_that_cannot_show_it_all_shows_what_it_can(run, notes, encoding):
    notes.add_message("user", "naïve 🎉")
    env = {"PYTHONIOENCODING": encoding}
    for arguments in (["list"], ["show", "notes"], ["search", "🎉"]):
        done = subprocess.run(
            [*COMMAND, "context", *arguments],
            capture_output=True,
            env=environment(notes.directory.parent.parent, env),
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr == b""
    assert json.loads(ok(run("search", "🎉", "--format", "json", env={"PYTHONIOENCODING": "ascii"})))[0]["number"] == 3


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_names(run, notes, root, tmp_path, shell):
    ContextManager("nothing", root)
    ContextManager("other", root)

    def completed(*words):
        env = {
            "_CLEVERAGENTS_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": " ".join(["cleveragents", *words]),
            "COMP_CWORD": words[-1] if shell == "fish" else str(len(words)),
        }
        done = command(home=tmp_path / "home", env=env)
        assert done.returncode == 0, done.stderr
        return {word for line in done.stdout.splitlines() for word in line.split(",")}

    assert {"notes", "nothing"} <= completed("context", "show", "no")
    assert "other" not in completed("context", "show", "no")
    assert "other" in completed("context", "search", "x", "--context", "o")


def test_completion_without_a_store_is_silent(tmp_path):
    env = {"_CLEVERAGENTS_COMPLETE": "bash_complete", "COMP_WORDS": "cleveragents context show ", "COMP_CWORD": "3"}
    done = command(home=tmp_path / "home", env=env)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
    assert not (tmp_path / "home").exists()
