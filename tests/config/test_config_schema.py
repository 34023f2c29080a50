"""The JSON Schema for editors agrees with what loading a file accepts."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from cleveragents import load_config
from cleveragents.config import OPERATORS
from cleveragents.config.faults import _REQUIRED
from cleveragents.config.schema import json_schema
from cleveragents.errors import ConfigError

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))

LLM = "agents: {{a: {{type: llm, llm: local, {}}}}}".format
TOOL = "agents: {{a: {{type: tool, code: result = 1, {}}}}}".format
ROUTE = "agents: {{a: {{type: tool, code: result = 1}}}}\nroutes: {{r: {{from: input, to: output, {}}}}}".format

GOOD = [
    LLM(""),
    LLM("temperature: 0, max_tokens: 1, timeout: 0.5, system_prompt: '', tools: []"),
    LLM("temperature: , max_tokens: , timeout: , base_url: , api_key_env: "),
    LLM("temperature: 2.0, base_url: 'http://127.0.0.1:8080/v1', api_key_env: MY_KEY"),
    LLM("base_url: 'http://localhost${HOME}'"),
    "agents: {a: {type: llm, llm: 'openrouter:meta/llama:free'}}",
    "agents: {a: {type: llm, llm: 'gguf:/my models/a.gguf'}}",
    TOOL("description: x, time_limit: 1, memory_limit: 1000000"),
    TOOL("parameters: {a: {type: number}, b: {type: [string, 'null']}, c: {enum: [1, 2]}, d: {}}"),
    TOOL("parameters: {}"),
    ROUTE("through: []"),
    ROUTE("through: [a, filter: x, map: y]"),
    "agents: {a: {type: llm, llm: local, tools: b}, b: {type: tool, code: result = 1}}",
    "agents: {a: {type: tool, code: x}}\nroutes: {r: {from: [input]}, s: {from: r, to: [output]}}",
    LLM("") + "\nname: a/b\nhop_limit: 1\nhistory: {messages: 0, assistant_characters: 1}",
    LLM("") + "\ncontext: {temperature: 1, x: [null]}",
    LLM("") + "\nroutes: {}\nhistory: {}\ncontext: {}",
]

BAD = [
    "{}",
    "agents: {}",
    "agents: ",
    "agents: []",
    "agents: {a: }",
    "agents: {a: {}}",
    "agents: {a: {type: lm, llm: local}}",
    "agents: {a: {llm: local}}",
    "agents: {a: {type: llm}}",
    "agents: {a: {type: tool}}",
    "agents: {'a b': {type: llm, llm: local}}",
    "agents: {a: {type: llm, llm: gpt}}",
    "agents: {a: {type: llm, llm: 'gguf:'}}",
    "agents: {a: {type: tool, code: ''}}",
    LLM("temprature: 1"),
    LLM("temperature: 3"),
    LLM("temperature: hot"),
    LLM("temperature: true"),
    LLM("max_tokens: 0"),
    LLM("max_tokens: 1.5"),
    LLM("timeout: 0"),
    LLM("timeout: 100000"),
    LLM("system_prompt: "),
    LLM("system_prompt: 3"),
    LLM("base_url: 'ftp://x'"),
    LLM("base_url: 'http://x/v1?key=1'"),
    LLM("base_url: 'http://x/v1#part'"),
    LLM("base_url: 'http://${HOME}/v1?key=1'"),
    "agents: {a: {type: llm, llm: 'gguf:${HOME}/a.gguf'}}",
    "agents: {a: {type: llm, llm: 'openai:${HOME}'}}",
    LLM("api_key_env: sk-abc"),
    LLM("tools: [1]"),
    LLM("tools: [b, b]"),
    LLM("code: x"),
    TOOL("llm: local"),
    TOOL("time_limit: 0"),
    TOOL("time_limit: 86401"),
    TOOL("memory_limit: 1.5"),
    TOOL("parameters: {a: {type: int}}"),
    TOOL("parameters: {a: text}"),
    TOOL("parameters: {'a b': {}}"),
    ROUTE("name: r"),
    ROUTE("thru: [a]"),
    ROUTE("through: a"),
    ROUTE("through: [1]"),
    ROUTE("through: [{flter: x}]"),
    ROUTE("through: [{filter: x, map: y}]"),
    ROUTE("through: [{filter: ''}]"),
    ROUTE("through: [{map: 1}]"),
    LLM("") + "\nroutes: {r: {to: output}}",
    LLM("") + "\nroutes: {r: {from: [], to: output}}",
    LLM("") + "\nroutes: {input: {from: input, to: output}}",
    LLM("") + "\nname: Paper",
    LLM("") + "\nname: paper",
    LLM("") + "\npath: x",
    LLM("") + "\nhop_limit: 0",
    LLM("") + "\nhistory: {messages: -1}",
    LLM("") + "\nhistory: {assistant_characters: 0}",
    LLM("") + "\nhistory: {message: 1}",
    LLM("") + "\ncontext: [1]",
    LLM("") + "\ncontext: {temperature: 3}",
]


@pytest.fixture(scope="module")
def validator():
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def plain(text):
    return YAML(typ="safe", pure=True).load(text)


@pytest.mark.parametrize("text", GOOD)
def test_what_loads_the_schema_accepts(load, validator, text):
    load(text)
    validator.validate(plain(text))


@pytest.mark.parametrize("text", BAD)
def test_what_the_schema_refuses_does_not_load(faults, validator, text):
    assert not validator.is_valid(plain(text))
    assert faults(text)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_the_examples_are_valid_by_both(validator, example):
    load_config(example)
    validator.validate(plain(example.read_text(encoding="utf-8")))


def test_there_are_examples():
    assert EXAMPLES


def test_every_key_is_described_and_titled_with_its_name():
    schema = json_schema()
    assert "$id" not in json.dumps(schema)
    for section in (schema, *schema["$defs"].values()):
        assert section["title"]
        assert section["description"]
        for key, value in section["properties"].items():
            assert "$ref" in value or (value["title"], bool(value["description"])) == (key, True)


def test_the_schema_knows_every_operator():
    steps = json_schema()["$defs"]["RouteConfig"]["properties"]["through"]["items"]["oneOf"]
    named = {step["$ref"].rpartition("/")[2] for step in steps if "$ref" in step}
    assert named == {model.__name__ for model in OPERATORS.values()}


def test_a_file_the_schema_cannot_see_through_is_still_refused(load, validator):
    text = "agents: {a: {type: tool, code: x = }}"
    assert validator.is_valid(plain(text))
    with pytest.raises(ConfigError):
        load(text)


def test_every_required_key_that_is_missing_is_told_what_belongs_there():
    sections = (json_schema(), *json_schema()["$defs"].values())
    required = {key for section in sections for key in section.get("required", [])}
    assert required - {"type"} - set(OPERATORS) <= set(_REQUIRED)
