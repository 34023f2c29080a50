"""Everything that docs/llms.md shows is run, and the numbers in it are those of the code."""

import subprocess
import sys
from pathlib import Path

import pytest

from cleveragents import load_config
from cleveragents.agents.llm import instructions, local
from cleveragents.agents.llm.agent import MAX_TOOL_ROUNDS
from cleveragents.agents.llm.errors import EXTRAS
from support.command import environment
from support.pages import page

PAGE = page("llms.md")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llms")
    for text in PAGE.blocks("yaml"):
        (folder / text.splitlines()[0].removeprefix("# ")).write_text(text, encoding="utf-8")
    return folder


def test_every_file_shown_is_a_configuration(folder):
    assert [load_config(file).name for file in sorted(folder.glob("*.yaml"))] == ["local/capital", "local/planner"]


def test_every_command_shown_prints_what_is_shown(folder):
    env = environment(folder / "home", {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"})
    (text,) = PAGE.blocks("console")
    (line, *output) = text.splitlines()
    done = subprocess.run(
        ["bash", "-c", line.removeprefix("$ ")], cwd=folder, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == output


def test_the_page_says_the_limits_of_the_code():
    words = " ".join(PAGE.text.split())
    assert f"is {local.MAX_TOKENS} tokens" in words
    assert f"{local.CONTEXT_TOKENS:,} tokens" in words
    assert f"{instructions.MAX_CHARACTERS:,} characters" in words
    assert f"After {MAX_TOOL_ROUNDS} rounds" in words
    assert local.SYSTEM_PROMPT in words
    assert all(f"`{extra}`" in words or f"[{extra}]" in words for extra in EXTRAS)
