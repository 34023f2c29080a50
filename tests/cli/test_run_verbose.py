"""``run -v``: what happens between the agents, on stderr, as it happens."""

import json
import re
import signal
import subprocess

import pytest

from cleveragents import ContextManager, PromptRead
from cleveragents.cli.run.progress import Reading
from support.command import COMMAND, command, environment


@pytest.fixture
def config(tmp_path):
    def write(text):
        path = tmp_path / "network.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


CHAIN = """
agents:
  first: {type: tool, code: result = message + "1"}
  second: {type: tool, code: result = message + "2"}
routes:
  one: {from: input, through: [first]}
  two: {from: one, through: [second], to: output}
"""


def said(done):
    """What was said, with each time as T."""
    return re.sub(r"\d+\.\d{3} s", "T", done.stderr).splitlines()


@pytest.mark.parametrize("output_format", ["text", "json", "stream-json"])
def test_each_agents_answer_has_a_line_with_route_and_time(home, config, output_format):
    done = command("run", config(CHAIN), "x", "-v", "--output-format", output_format, home=home)
    assert done.returncode == 0
    assert said(done) == ["one: first T", "two: second T"]
    assert "first" not in done.stdout
    assert command("run", config(CHAIN), "x", home=home).stderr == ""


def test_a_line_is_there_before_the_next_agent_has_answered(home, config):
    endless = CHAIN.replace('result = message + "2"', "'for _ in iter(int, 1): pass'")
    child = subprocess.Popen(
        [*COMMAND, "run", str(config(endless)), "x", "-v"],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stderr is not None
    assert child.stderr.readline().startswith("one: first ")
    assert child.poll() is None
    child.kill()
    child.communicate()


def test_c101_ctrl_c_with_two_agents_busy_ends_both_and_keeps_what_was_changed(home, config):
    text = """
agents:
  note: {type: tool, code: 'context["noted"] = message; result = message'}
  one: {type: tool, time_limit: 600, code: 'for _ in iter(int, 1): pass'}
  two: {type: tool, time_limit: 600, code: 'for _ in iter(int, 1): pass'}
routes:
  first: {from: input, through: [note]}
  left: {from: first, through: [one], to: output}
  right: {from: first, through: [two], to: output}
"""
    child = subprocess.Popen(
        [*COMMAND, "run", str(config(text)), "x", "-v", "--context", "talk"],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stderr is not None
    assert child.stderr.readline().startswith("first: note ")
    child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=30)

    assert (child.returncode, stdout) == (130, "")
    assert stderr.split()[-1] == "interrupted"
    assert ContextManager.open("talk", root=home / "contexts").global_context == {"noted": "x"}


def test_a_failure_and_what_became_of_it_have_lines(home, config):
    text = """
agents:
  bad: {type: tool, code: result = 1 / 0, on_error: good}
  good: {type: tool, code: result = "good"}
routes:
  r: {from: input, through: [bad], to: output}
  s: {from: input, through: [map: 1 / 0], to: output, on_error: skip}
"""
    done = command("run", config(text), "x", "--verbose", home=home)
    assert (done.returncode, done.stdout) == (0, "good\n")
    assert sorted(said(done)) == [
        "r: bad T, failed: ZeroDivisionError: division by zero (line 1)",
        "r: good T",
        "r: good is asked instead: agent bad: ZeroDivisionError: division by zero (line 1)",
        "s: skipped: route s: map '1 / 0': ZeroDivisionError: division by zero",
    ]


def test_two_agents_side_by_side_that_set_one_key_to_different_values_are_told_of(home, config):
    text = """
agents:
  quick: {type: tool, code: 'context["verdict"] = {"score": 7}; result = "quick"'}
  slow:
    type: tool
    code: |
      import time
      time.sleep(1.5)
      context["verdict"] = {"score": "\\x1b" + "x" * 200}
      result = "slow"
routes:
  r: {from: input, through: [parallel: [quick, slow]], to: output}
""".replace("parallel: [quick, slow]", "parallel: {agents: [quick, slow]}")
    done = command("run", config(text), "x", "-v", "--output-format", "json", home=home)
    (line,) = [line for line in said(done) if "conflict" in line]
    assert line.startswith('r: conflict: slow set verdict.score to "\\u001bxxx')
    assert line.endswith("x…, which was set to 7 meanwhile")
    assert len(line) < 200
    assert json.loads(done.stdout)["global_context"]["verdict"]["score"].endswith("x")


def test_a_prompt_that_is_read_slowly_is_told_every_two_seconds():
    reading = Reading()
    said = [reading.line(PromptRead("a", tokens, 2000), now=tokens / 250) for tokens in range(250, 1500, 250)]
    assert said == [None, None, "a has read 750 of 2,000 tokens", None, "a has read 1,250 of 2,000 tokens"]
