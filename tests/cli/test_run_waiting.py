"""Waiting is not silent: for the first words of an llm, and for standard input that nobody closes."""

import os
import pty
import re
import subprocess
import threading

import pytest

from support.command import COMMAND, environment
from support.scripted_llm import says

KEY = {"OPENAI_API_KEY": "any"}
SPINNER = rb"(?:[|/\\-]\r)+ \r"


@pytest.fixture
def config(tmp_path, scripted_llm):
    path = tmp_path / "assistant.yaml"
    path.write_text(
        f"agents: {{a: {{type: llm, llm: 'openai:any', base_url: '{scripted_llm.url}'}}}}", encoding="utf-8"
    )
    return path


@pytest.mark.parametrize(
    ("options", "answer"),
    [([], rb"Paris\r\n"), (["--no-stream"], rb"Paris\r\n"), (["--output-format", "json"], rb'\{"actor".*\}\r\n')],
    ids=["live", "whole", "json"],
)
def test_a_spinner_turns_until_the_answer_begins(home, config, scripted_llm, options, answer):
    seen = threading.Event()

    def late(exchange):
        seen.wait(60)
        says("Paris")(exchange)

    scripted_llm.script(late)
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [*COMMAND, "run", str(config), "Capital?", *options],
        env=environment(home, KEY),
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 1000):
            shown += piece
            if b"|\r/\r" in shown:
                seen.set()
    except OSError:
        pass  # the end of a terminal is an error on Linux
    os.close(ours)
    assert child.wait(60) == 0, shown
    assert re.fullmatch(SPINNER + answer, shown, re.DOTALL), shown


def test_standard_input_that_nobody_closes_is_told_of_when_there_is_a_prompt(home, config, scripted_llm):
    scripted_llm.script(says("Paris"))
    child = subprocess.Popen(
        [*COMMAND, "run", str(config), "Capital?"],
        env=environment(home, KEY),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stderr is not None
    assert b"standard input" in child.stderr.readline()
    assert child.communicate(b"Of France.", timeout=60) == (b"Paris\n", b"")
    assert scripted_llm.requests[0]["messages"][-1]["content"] == "Capital?\n\nOf France."
