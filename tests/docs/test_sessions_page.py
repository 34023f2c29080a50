"""docs/sessions.md: every command and the program, in their order, on both databases."""

import os
import re
import subprocess
import sys
from pathlib import Path

from cleveragents.sessions.session import Session
from cleveragents.values.ids import new_ulid
from support.command import environment
from support.pages import page

PAGE = (Path(__file__).parents[2] / "docs" / "sessions.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_every_command_of_the_page_works_as_it_stands_there(tmp_path):
    env = environment(tmp_path / "home", {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"})
    (block,) = page("sessions.md").section("The database").blocks("console")
    commands = [line[2:] for line in block.splitlines()]
    assert len(commands) == 5
    script = "set -ex\n" + "\n".join(commands)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "monday.db").exists()


def test_the_program_of_the_page_works_as_it_stands_there(database_url):
    program = blocks("python")[0]
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"CLEVERAGENTS_DATABASE_URL": database_url},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "['sunny', 'To the sea.'] 4"
    assert "estimated_cost=0.00031" in lines[1]
    assert "it is 4" in lines[2]


def test_the_keys_of_the_document_are_those_of_the_page():
    told = PAGE.partition("all always there:")[2].partition("Times are")[0]
    assert re.findall(r"`(\w+)`", told) == list(Session(new_ulid()).as_export_dict())


def test_every_error_that_the_page_names_exists():
    from cleveragents import errors

    for name in re.findall(r"\b(\w+Error)\b", PAGE):
        assert hasattr(errors, name) or name == "ValueError", name
