"""Everything that docs/llms.md shows is run, and the numbers in it are those of the code."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cleveragents import load_config
from cleveragents.agents.llm import local as local_llm
from cleveragents.agents.llm import system_prompt as prompts
from cleveragents.agents.llm.agent import MAX_TOOL_ROUNDS
from cleveragents.agents.llm.errors import EXTRAS
from support.command import environment

PAGE = (Path(__file__).parents[2] / "docs" / "llms.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llms")
    for text in blocks("yaml"):
        (folder / text.splitlines()[0].removeprefix("# ")).write_text(text, encoding="utf-8")
    return folder


def test_every_file_shown_is_a_configuration(folder):
    assert [load_config(file).name for file in sorted(folder.glob("*.yaml"))] == ["local/capital", "local/planner"]


def test_every_command_shown_prints_what_is_shown(folder):
    env = environment(folder / "home", {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"})
    (text,) = blocks("console")
    (line, *output) = text.splitlines()
    done = subprocess.run(
        ["bash", "-c", line.removeprefix("$ ")], cwd=folder, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == output


def test_the_page_says_the_limits_of_the_code():
    words = " ".join(PAGE.split())
    assert f"is {local_llm.MAX_TOKENS} tokens" in words
    assert f"{local_llm.CONTEXT_TOKENS:,} tokens" in words
    assert f"{prompts.MAX_CHARACTERS:,} characters" in words
    assert f"After {MAX_TOOL_ROUNDS} rounds" in words
    assert local_llm.SYSTEM_PROMPT in words
    assert all(f"`{extra}`" in words or f"[{extra}]" in words for extra in EXTRAS)
