"""docs/configuration.md: what it shows loads, and what there is it shows."""

import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from cleveragents import load_config
from cleveragents.config import OPERATORS
from cleveragents.config.schema import json_schema

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("text", blocks("yaml"))
def test_every_file_of_the_page_loads(load, monkeypatch, text):
    monkeypatch.setenv("LLM_URL", "http://127.0.0.1:8080/v1")
    load(text)
    Draft202012Validator(json_schema()).validate(YAML(typ="safe", pure=True).load(text))


def test_the_faults_of_the_page_are_those_of_its_example_with_two_mistakes(faults, monkeypatch):
    monkeypatch.setenv("LLM_URL", "http://127.0.0.1:8080/v1")
    whole = blocks("yaml")[1].replace("temperature: 0.3", "temperature: 3").replace("max_tokens: 800", "max_token: 800")
    assert [f"paper.yaml:{line}" for line in faults(whole)] == blocks("text")[0].splitlines()


def test_the_page_explains_every_key_and_every_operator():
    schema = json_schema()
    for section in (schema, *schema["$defs"].values()):
        for key in section["properties"]:
            if key not in OPERATORS:
                assert re.search(rf"^\| `(history\.)?{key}` \|", PAGE, flags=re.MULTILINE), key
    for operator in OPERATORS:
        assert f"| `{operator}: " in PAGE


def test_the_python_of_the_page_runs(load, monkeypatch, paper):
    load("agents: {assistant: {type: llm, llm: local}}")
    names: dict[str, Any] = {}
    exec(blocks("python")[0], names)  # noqa: S102 - it is our own page
    assert names["config"].agents == load_config(paper).agents
