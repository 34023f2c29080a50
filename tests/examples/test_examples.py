"""Each example runs as it stands, with no key and no network."""

import json
from pathlib import Path

import pytest

from support.command import command

EXAMPLES = Path(__file__).parents[2] / "examples"


def result(home, name, prompt):
    done = command("run", EXAMPLES / name, prompt, "--output-format", "json", home=home)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_assistant_remembers_over_two_processes(tmp_path):
    for prompt in ("The meeting is on Friday at ten.", "On which day is the meeting?"):
        done = command("run", EXAMPLES / "assistant.yaml", prompt, "--context", "demo", home=tmp_path)
        assert done.returncode == 0, done.stderr
    assert "Friday" in done.stdout
    assert "The meeting is on Friday at ten." in command("context", "show", "demo", home=tmp_path).stdout


def test_the_chain_asks_three_llm_agents_one_after_the_other(tmp_path):
    document = result(tmp_path, "paper.yaml", "Why bees matter")
    assert document["usage"]["requests"] == 3
    assert document["output"].strip()


@pytest.mark.parametrize(
    ("text", "verdict"),
    [("The quick brown fox.", "4 words, fit to print"), ("and then", "2 words, not finished")],
)
def test_the_split_and_merge_shares_its_writing_stage(tmp_path, text, verdict):
    document = result(tmp_path, "desk.yaml", text)
    assert document["outputs"] == [verdict]
    assert document["global_context"]["writing_stage"] == "checked"
    assert document["global_context"]["checks"]["words"] == len(text.split())


def test_no_example_is_without_a_test():
    tested = Path(__file__).read_text(encoding="utf-8")
    assert [file.name for file in EXAMPLES.glob("*.yaml") if file.name not in tested] == []
