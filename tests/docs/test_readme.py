"""A new user's first hour: every file, command and program of the README, in its order, in a fresh folder."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import environment

ROOT = Path(__file__).parents[2]
ACTIVATE = ". .venv/bin/activate"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What a clone looks like after `make demo`, and the files that the reader writes."""
    folder = tmp_path_factory.mktemp("new user")
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / "examples").symlink_to(ROOT / "examples")
    assistant, paper = blocks("yaml")
    (folder / "assistant.yaml").write_text(assistant, encoding="utf-8")
    (folder / "paper.yaml").write_text(paper, encoding="utf-8")
    return folder


def run(folder, command):
    env = environment(folder / "home", {"PATH": "/usr/bin:/bin"})
    done = subprocess.run(
        ["bash", "-c", f"{ACTIVATE}\n{command}"],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_command_and_program_of_the_readme_works(folder):
    commands = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    assert len(commands) >= 9
    assert commands[0] == ACTIVATE
    answers = {command: run(folder, command) for command in commands}
    asks = [command for command in commands if "On which day" in command]
    assert len(asks) == 2
    for command in asks:
        assert "Friday" in answers[command]
    assert "Paris" in answers['cleveragents run examples/assistant.yaml "What is the capital of France?"']
    (notes,) = [command for command in commands if "notes.txt" in command and "run" in command]
    assert "report of May" in json.loads(answers[notes])["output"]
    (program,) = blocks("python")
    (folder / "program.py").write_text(program, encoding="utf-8")
    assert run(folder, "python program.py").strip()


def test_the_networks_of_the_readme_are_valid_and_the_schema_is_written(folder):
    for command in re.findall(r"`(cleveragents config [^`]*)`", README):
        run(folder, command)
    assert (folder / "cleveragents.schema.json").stat().st_size > 100


def test_every_page_that_is_linked_is_there():
    for page in re.findall(r"\]\(((?!http)[^)#]+)\)", README):
        assert (ROOT / page).is_file(), page
