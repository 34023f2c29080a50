"""docs/python.md: its program prints what an llm says as it arrives."""

import os

import pytest

from support.pages import page
from support.scripted_llm import calls, says

CONFIG = """
agents:
  assistant: {{type: llm, llm: 'openai:any', base_url: '{url}', tools: [count]}}
  count: {{type: tool, code: result = len(message)}}
"""


@pytest.fixture
def program(tmp_path, monkeypatch, scripted_llm):
    """The program of the page, in a folder with its configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(os.environ, "CLEVERAGENTS_HOME", str(tmp_path / "home"))
    (tmp_path / "assistant.yaml").write_text(CONFIG.format(url=scripted_llm.url), encoding="utf-8")
    (block,) = page("python.md").blocks("python")
    return compile(block, "program.py", "exec")


def test_the_program_on_the_page_streams(program, scripted_llm, capsys):
    scripted_llm.script(says("Paris."), calls("count", {"message": "abc"}), says(["Ro", "me."]))
    exec(program, {})  # noqa: S102 - the block of the page
    assert capsys.readouterr().out.splitlines() == [
        "Paris.",
        "calls count with {'message': 'abc'}",
        "Ro|me.|",
        "10 tokens",
    ]
