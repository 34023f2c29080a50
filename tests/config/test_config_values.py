"""What a good file means."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from cleveragents.config import (
    OPERATORS,
    AppConfig,
    FilterConfig,
    LLMAgentConfig,
    MapConfig,
    RouteConfig,
    ToolAgentConfig,
    load_config,
)

ONE_AGENT = {"agents": {"a": {"type": "llm", "llm": "local"}}}


def test_a_whole_file_is_read_as_it_is_written(load, monkeypatch):
    monkeypatch.setenv("LLM_HOST", "10.0.0.7:8080")
    config = load(
        """
        name: local/paper
        agents:
          planner:
            type: llm
            llm: openai:gpt-5-mini
            system_prompt: "Plan a {{ context.document_type }} for ${NAME}."
            temperature: 0
            max_tokens: 800
            timeout: 60
            base_url: http://${LLM_HOST}/v1
            api_key_env: OPENAI_API_KEY
            tools: [word_count]
          word_count:
            type: tool
            description: Count the words.
            parameters: {message: {type: string, description: The text.}}
            time_limit: 0.5
            memory_limit: 64000000
            code: |
              result = len(message.split())
        routes:
          draft: {from: input, through: [filter: message, planner, map: message.strip()], to: output}
        context: {document_type: thesis, stage: null, parts: [1, {two: 2.5}], day: 2026-01-31}
        hop_limit: 50
        history: {messages: 4, assistant_characters: 80}
        """
    )
    assert config.name == "local/paper"
    assert config.path == Path("paper.yaml")
    assert config.agents["planner"] == LLMAgentConfig(
        llm="openai:gpt-5-mini",
        system_prompt="Plan a {{ context.document_type }} for ${NAME}.",
        temperature=0,
        max_tokens=800,
        timeout=60,
        base_url="http://10.0.0.7:8080/v1",
        api_key_env="OPENAI_API_KEY",
        tools=("word_count",),
    )
    assert config.agents["word_count"] == ToolAgentConfig(
        description="Count the words.",
        parameters={"message": {"type": "string", "description": "The text."}},
        time_limit=0.5,
        memory_limit=64_000_000,
        code="result = len(message.split())\n",
    )
    assert config.network() == (
        RouteConfig(
            name="draft",
            source=("input",),
            through=(FilterConfig(filter="message"), "planner", MapConfig(map="message.strip()")),
            to=("output",),
        ),
    )
    assert config.context == {"document_type": "thesis", "stage": None, "parts": [1, {"two": 2.5}], "day": "2026-01-31"}
    assert (config.hop_limit, config.history.messages, config.history.assistant_characters) == (50, 4, 80)


def test_what_is_not_written_has_a_default(load):
    config = load("agents: {a: {type: llm, llm: local, tools: b}, b: {type: tool, code: result = 1}}")
    llm, tool = config.agents["a"], config.agents["b"]
    assert (llm.system_prompt, llm.temperature, llm.max_tokens, llm.timeout) == ("", None, None, None)
    assert (llm.base_url, llm.api_key_env, llm.tools) == (None, None, ("b",))
    assert (tool.description, tool.parameters) == ("", {"message": {"type": "string"}})
    assert (tool.time_limit, tool.memory_limit) == (5.0, 256_000_000)
    assert (config.context, config.hop_limit) == ({}, 25)
    assert (config.history.messages, config.history.assistant_characters) == (10, 500)


def test_one_agent_needs_no_routes(load):
    config = load("agents: {a: {type: llm, llm: local, tools: [b]}, b: {type: tool, code: result = 1}}")
    assert config.network() == (RouteConfig(source=("input",), through=("a",), to=("output",)),)


def test_a_split_a_merge_and_a_loop_are_read(load):
    config = load(
        """
        agents: {a: {type: tool, code: result = 1}}
        routes:
          one: {from: input, through: [a]}
          two: {from: input, to: [both]}
          both: {from: [one, two], to: [output, one]}
        """
    )
    assert [(route.name, route.source, route.to) for route in config.network()] == [
        ("one", ("input",), ()),
        ("two", ("input",), ("both",)),
        ("both", ("one", "two"), ("output", "one")),
    ]


@pytest.mark.parametrize(
    ("file", "actor"),
    [
        ("paper.yaml", "local/paper"),
        ("My Résumé.yaml", "local/my-resume"),
        ("v1.2_final.yml", "local/v1.2_final"),
        ("агенты.yaml", "local/agents"),
        (".hidden", "local/hidden"),
        (f"{'x' * 100}.yaml", f"local/{'x' * 64}"),
    ],
)
def test_an_actor_is_named_after_its_file(tmp_path, file, actor):
    path = tmp_path / file
    path.write_text("agents: {a: {type: llm, llm: local}}", encoding="utf-8")
    assert load_config(path).name == actor


def test_c23_an_actor_name_that_is_well_formed_is_kept(load):
    for name in ("local/paper", "team/bot", "a/b", "0x/9.y_z-", f"{'n' * 64}/{'m' * 64}"):
        assert load(f"name: {name}\nagents: {{a: {{type: llm, llm: local}}}}").name == name


@pytest.mark.parametrize(
    "llm",
    ["local", "gguf:/models/my model.gguf", "gguf:C:\\m.gguf", "openai:gpt-5-mini", "openrouter:meta/llama-3.3:free"],
)
def test_an_llm_is_named_in_one_of_three_forms(llm):
    assert LLMAgentConfig(llm=llm).llm == llm


def test_what_a_variable_holds_is_not_expanded_again(load, monkeypatch):
    monkeypatch.setenv("OUTER", "http://h/${INNER}")
    monkeypatch.setenv("INNER", "no")
    assert (
        load("agents: {a: {type: llm, llm: local, base_url: '${OUTER}'}}").agents["a"].base_url == "http://h/${INNER}"
    )


def test_a_dollar_sign_is_only_text_outside_of_connections(load):
    config = load(
        """
        agents:
          a: {type: tool, description: "${HOME}", code: 'result = "${NOT_SET}"'}
        context: {price: "${PRICE}"}
        """
    )
    assert config.agents["a"].description == "${HOME}"
    assert config.agents["a"].code == 'result = "${NOT_SET}"'
    assert config.context == {"price": "${PRICE}"}


def test_anchors_and_merge_keys_share_settings(load):
    config = load(
        """
        agents:
          a: &first {type: llm, llm: local, max_tokens: 5, timeout: 1}
          b: &second {<<: *first, max_tokens: 6}
          c: {timeout: 3, <<: [*second, *first]}
          d: *first
        routes: {r: {from: input, through: [a, b, c, d], to: output}}
        """
    )
    seen = {name: (agent.max_tokens, agent.timeout) for name, agent in config.agents.items()}
    assert seen == {"a": (5, 1), "b": (6, 1), "c": (6, 3), "d": (5, 1)}


def test_an_anchor_may_be_given_anew(load):
    text = "agents: {a: {type: llm, llm: local}}\ncontext: {a: &x 1, b: *x, c: &x 2, d: *x}\n"
    assert load(text).context == {"a": 1, "b": 1, "c": 2, "d": 2}


def test_yes_and_no_are_texts(load):
    assert load("agents: {on: {type: llm, llm: local}}\ncontext: {answer: yes, no: off}").context == {
        "answer": "yes",
        "no": "off",
    }


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(paper):
    paper.write_bytes(
        b"\xef\xbb\xbfagents:\r\n  a:\r\n    type: tool\r\n    code: |\r\n      x = 1\r\n      result = x\r\n"
    )
    assert load_config(paper).agents["a"].model_dump()["code"] == "x = 1\nresult = x\n"


def test_a_lone_surrogate_is_replaced_where_it_enters(load):
    config = load(
        r"""{agents: {a: {type: tool, code: "result = '\ud800'", description: "\ud800"}}, context: {a: "\ud800"}}"""
    )
    tool = config.agents["a"].model_dump()
    assert (tool["code"], tool["description"], config.context) == ("result = '\ufffd'", "\ufffd", {"a": "\ufffd"})
    assert LLMAgentConfig(llm="local", system_prompt="x\ud800y").system_prompt == "x\ufffdy"


# --- from Python ----------------------------------------------------------------------------------------


def test_python_takes_what_a_file_holds():
    config = AppConfig.model_validate(
        {**ONE_AGENT, "routes": {"r": {"from": "input", "through": ["a"], "to": "output"}}}
    )
    assert config.routes["r"].name == "r"
    assert config.path is None
    assert config.name == "local/agents"


def test_python_takes_models_too():
    config = AppConfig(
        agents={"a": LLMAgentConfig(llm="local")},
        routes={"r": RouteConfig(source=("input",), through=("a", MapConfig(map="message")), to=("output",))},
        context={"pair": (1, 2)},
    )
    assert config.routes["r"].name == "r"
    assert config.context == {"pair": [1, 2]}


def test_a_route_is_made_by_either_name_of_its_source():
    as_in_a_file: dict[str, Any] = {"from": "input", "through": ["a"], "to": "output"}
    assert RouteConfig(**as_in_a_file) == RouteConfig(name="route", source=("input",), through=("a",), to=("output",))


def test_what_is_dumped_can_be_read_again():
    config = AppConfig.model_validate(
        {**ONE_AGENT, "routes": {"r": {"from": "input", "through": ["a", {"map": "message"}], "to": "output"}}}
    )
    dumped = config.model_dump(mode="json", by_alias=True)
    expected = {"from": ["input"], "through": ["a", {"map": "message"}], "to": ["output"]}
    assert dumped["routes"] == {"r": {**expected, "until": None, "on_error": "fail"}}
    assert AppConfig.model_validate(dumped) == config


def test_a_configuration_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        AppConfig.model_validate(ONE_AGENT).hop_limit = 3


@pytest.mark.parametrize(
    "data",
    [
        {"agents": {"a": {"type": "llm", "llm": "local"}, "b": {"type": "llm", "llm": "local"}}},
        {**ONE_AGENT, "routes": {"r": {"from": "input", "through": ["missing"], "to": "output"}}},
        {**ONE_AGENT, "context": {"temperature": 3}},
        {**ONE_AGENT, "context": {"x": object()}},
    ],
    ids=["no routes", "missing agent", "temperature", "not JSON"],
)
def test_python_gets_the_checks_of_the_whole_too(data):
    with pytest.raises(ValidationError):
        AppConfig.model_validate(data)


def test_a_refused_value_is_not_in_the_error_python_gets():
    with pytest.raises(ValidationError) as raised:
        LLMAgentConfig(llm="local", api_key_env="sk-very-secret-key-0001")
    assert "secret" not in str(raised.value)


def test_every_operator_is_in_the_table_under_the_key_that_writes_it():
    assert len(OPERATORS) >= 14
    assert (OPERATORS["filter"], OPERATORS["map"]) == (FilterConfig, MapConfig)
    for name, model in OPERATORS.items():
        assert model.__name__ == f"{name.capitalize()}Config"
