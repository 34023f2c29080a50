"""``cleveragents config``, as it is typed."""

import json
from functools import partial
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from support.command import C_LOCALE

EXAMPLES = Path(__file__).parents[2] / "examples"
GOOD = "agents: {a: {type: llm, llm: local}}\n"


@pytest.fixture
def config(run):
    return partial(run, "config")


def test_good_files_are_named_with_what_is_in_them(config, tmp_path):
    (tmp_path / "one.yaml").write_text(GOOD, encoding="utf-8")
    done = config("validate", "one.yaml", EXAMPLES / "paper.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "one.yaml: ok (1 agent, 1 route)",
        f"{EXAMPLES / 'paper.yaml'}: ok (3 agents, 3 routes)",
    ]


def test_one_bad_file_among_good_ones_is_told_and_fails_the_command(config, tmp_path):
    (tmp_path / "bad.yaml").write_text(
        "agents:\n  a: {type: llm, llm: local, temperature: 3,\n  x: 1}\n", encoding="utf-8"
    )
    (tmp_path / "good.yaml").write_text(GOOD, encoding="utf-8")
    done = config("validate", "bad.yaml", "missing.yaml", "good.yaml")
    assert done.returncode == 2
    assert done.stdout == "good.yaml: ok (1 agent, 1 route)\n"
    faults = done.stderr.splitlines()
    assert faults[0] == "bad.yaml:2: agents.a.temperature: 3 is not between 0 and 2"
    assert faults[1].startswith("bad.yaml:3: agents.a.x: unknown key; expected type, base_url, llm,")
    assert faults[2] == "missing.yaml: there is no such file"
    assert len(faults) == 3


@pytest.mark.parametrize("arguments", [["validate"], ["show"], ["show", "a", "b"], ["schema", "x"], ["nothing"]])
def test_wrong_usage_is_one_line(config, arguments):
    done = config(*arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "--help" in done.stderr


def test_show_fills_in_the_defaults(config, tmp_path):
    (tmp_path / "one.yaml").write_text(GOOD + "context: {é: 1}\n", encoding="utf-8")
    done = config("show", "one.yaml")
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert (shown["name"], shown["hop_limit"], shown["context"]) == ("local/one", 25, {"é": 1})
    assert shown["agents"]["a"]["temperature"] is None
    assert "path" not in shown


def test_c107_show_says_0_for_a_temperature_of_0(config, tmp_path):
    (tmp_path / "zero.yaml").write_text("agents: {a: {type: llm, llm: local, temperature: 0}}", encoding="utf-8")
    assert json.loads(config("show", "zero.yaml").stdout)["agents"]["a"]["temperature"] == 0


def test_what_is_shown_is_a_configuration_again(config, tmp_path):
    (tmp_path / "again.yaml").write_text(config("show", EXAMPLES / "desk.yaml").stdout, encoding="utf-8")
    assert config("show", "again.yaml").stdout == config("show", EXAMPLES / "desk.yaml").stdout


def test_show_leaves_out_what_may_be_secret_in_an_address(config, tmp_path):
    text = "agents: {a: {type: llm, llm: local, base_url: '${PLACE}'}}"
    (tmp_path / "one.yaml").write_text(text, encoding="utf-8")
    done = config("show", "one.yaml", env={"PLACE": "https://me:hunter2@host:8443/v1"})
    assert json.loads(done.stdout)["agents"]["a"]["base_url"] == "https://host:8443/v1"


def test_show_of_a_bad_file_says_what_is_wrong(config, tmp_path):
    (tmp_path / "bad.yaml").write_text("agents: {}\n", encoding="utf-8")
    done = config("show", "bad.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: bad.yaml:1: agents: is empty; expected at least one agent\n"


def test_the_schema_is_printed(config):
    done = config("schema")
    assert (done.returncode, done.stderr) == (0, "")
    schema = json.loads(done.stdout)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("arguments", [[], ["validate"], ["show"], ["schema"]], ids=" ".join)
def test_help_has_an_example(config, arguments):
    done = config(*arguments, "--help")
    assert done.returncode == 0
    assert "Example: cleveragents config " in done.stdout


def test_nothing_is_written(config, tmp_path):
    (tmp_path / "one.yaml").write_text(GOOD, encoding="utf-8")
    config("validate", "one.yaml")
    config("show", "one.yaml")
    config("schema")
    assert [path.name for path in tmp_path.iterdir()] == ["one.yaml"]


def test_c28_a_file_with_accents_is_the_same_under_a_c_locale(config, tmp_path):
    text = "agents: {a: {type: llm, llm: local, system_prompt: 'Élan, Привет 🎉'}}\ncontext: {café: é}\n"
    (tmp_path / "accents.yaml").write_text(text, encoding="utf-8")
    done = config("show", "accents.yaml", env=C_LOCALE)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)
    assert shown["agents"]["a"]["system_prompt"] == "Élan, Привет 🎉"
    assert shown["context"] == {"café": "é"}


def test_c28_a_fault_beside_an_accent_can_be_told_under_a_c_locale(config, tmp_path):
    (tmp_path / "accents.yaml").write_text("agents: {é: {type: llm, llm: lócal}}\n", encoding="utf-8")
    done = config("validate", "accents.yaml", env=C_LOCALE)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 2
    assert "Traceback" not in done.stderr
