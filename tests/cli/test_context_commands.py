"""What holds for every ``cleveragents context`` command: results on stdout, all else on stderr."""

import json
import subprocess

import pytest

from cleveragents import ContextManager, list_contexts
from support.command import C_LOCALE, COMMAND, environment, ok, one_line

COMMANDS = ["list", "show", "search", "rename", "copy", "clear", "delete", "export", "import", "repair", "path"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(run_context, name):
    shown = ok(run_context(name, "--help"))
    assert "Example: " in shown
    assert "cleveragents context" in shown or f"context {name}" in shown


@pytest.mark.parametrize("name", COMMANDS[1:])
def test_an_unknown_context_is_not_found_and_not_made(run_context, root, name, tmp_path):
    arguments = {
        "search": ["x", "--context", "nobody"],
        "rename": ["nobody", "else"],
        "copy": ["nobody", "else"],
        "clear": ["nobody", "--yes"],
        "delete": ["nobody", "--yes"],
        "import": [str(tmp_path)],
    }.get(name, ["nobody"])
    line = one_line(run_context(name, *arguments), 2 if name == "import" else 3)
    assert name == "import" or "'nobody'" in line
    assert not root.exists()


@pytest.mark.parametrize("name", ["../x", "a/b", "", "con", "x" * 300, "a\nb"])
def test_a_bad_name_is_wrong_usage(run_context, root, name):
    one_line(run_context("show", name), 2)
    assert not root.exists()


def test_c104_a_reader_that_has_seen_enough_ends_the_output_quietly(notes, home):
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
            env=environment(home, {"PYTHONUNBUFFERED": "1"}),
            check=False,
        )
        assert done.stderr == "", pipeline
        assert done.returncode == 0, pipeline


def test_c28_names_and_texts_are_the_same_in_a_locale_that_is_not_utf_8(run_context, root, tmp_path):
    context = ContextManager("Привет", root)
    context.add_message("user", "é 🎉")
    assert (
        json.loads(ok(run_context("show", "Привет", "--format", "json", env=C_LOCALE)))["messages"][0]["content"]
        == "é 🎉"
    )
    assert json.loads(ok(run_context("list", "--format", "json", env=C_LOCALE)))[0]["name"] == "Привет"
    assert json.loads(ok(run_context("search", "É", "--format", "json", env=C_LOCALE)))[0]["content"] == "é 🎉"
    assert "? ?" in ok(run_context("show", "Привет", env=C_LOCALE))
    exported = ok(run_context("export", "Привет", "--output", "-", env=C_LOCALE))
    assert exported == ok(run_context("export", "Привет", "--output", "-"))
    ok(run_context("copy", "Привет", "é", env=C_LOCALE))
    ok(run_context("export", "é", env=C_LOCALE))
    ok(run_context("import", "é.context.json", "--name", "ö", env=C_LOCALE))
    ok(run_context("rename", "é", "ä", env=C_LOCALE))
    assert list_contexts(root) == ["Привет", "ä", "ö"] or list_contexts(root) == ["ä", "ö", "Привет"]
    assert one_line(run_context("show", "ж", env=C_LOCALE), 3).isascii()


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1"])
def test_c106_a_console_that_cannot_show_it_all_shows_what_it_can(run_context, notes, encoding):
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
    assert (
        json.loads(ok(run_context("search", "🎉", "--format", "json", env={"PYTHONIOENCODING": "ascii"})))[0]["number"]
        == 3
    )
