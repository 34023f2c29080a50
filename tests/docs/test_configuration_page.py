"""docs/configuration.md: what it shows loads, and what there is it shows."""

import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from cleveragents import ConfigError, load_config
from cleveragents.config import OPERATORS
from cleveragents.config.schema import json_schema
from support.pages import page

PAGE = page("configuration.md")


@pytest.fixture
def paper(tmp_path, monkeypatch):
    """The path of ``paper.yaml``, as someone in its folder writes it, with the variable set that the page uses."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LLM_URL", "http://127.0.0.1:8080/v1")
    return tmp_path / "paper.yaml"


@pytest.mark.parametrize("text", PAGE.blocks("yaml"))
def test_every_file_of_the_page_loads(paper, text):
    paper.write_text(text, encoding="utf-8")
    load_config("paper.yaml")
    Draft202012Validator(json_schema()).validate(YAML(typ="safe", pure=True).load(text))


def test_the_faults_of_the_page_are_those_of_its_example_with_two_mistakes(paper):
    whole = PAGE.blocks("yaml")[1]
    wrong = whole.replace("temperature: 0.3", "temperature: 3").replace("max_tokens: 800", "max_token: 800")
    paper.write_text(wrong, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        load_config("paper.yaml")
    assert str(raised.value).splitlines() == PAGE.blocks("text")[0].splitlines()


def test_the_page_explains_every_key_and_every_operator():
    schema = json_schema()
    for section in (schema, *schema["$defs"].values()):
        for key in section["properties"]:
            if key not in OPERATORS:
                assert re.search(rf"^\| `(history\.)?{key}` \|", PAGE.text, flags=re.MULTILINE), key
    for operator in OPERATORS:
        assert f"| `{operator}: " in PAGE.text


def test_the_python_of_the_page_runs(paper):
    paper.write_text("agents: {assistant: {type: llm, llm: local}}", encoding="utf-8")
    names: dict[str, Any] = {}
    exec(PAGE.blocks("python")[0], names)  # noqa: S102 - it is our own page
    assert names["config"].agents == load_config(paper).agents
