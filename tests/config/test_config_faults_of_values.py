"""Keys that nobody knows, and values that a key cannot have."""

import pytest

ONE = "agents: {a: {type: llm, llm: local}}\n"
TOOL_KEYS = ["type", "description", "code", "parameters", "time_limit", "memory_limit", "on_error"]
TOOL = "agents: {a: {type: tool, code: result = 1}}\n"


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("3", "3 is not between 0 and 2"),
        ("-0.1", "-0.1 is not between 0 and 2"),
        (".nan", "nan is not between 0 and 2"),
        (".inf", "inf is not between 0 and 2"),
        ("true", "true is not a number between 0 and 2"),
        ("hot", "'hot' is not a number between 0 and 2"),
        ("'1'", "'1' is not a number between 0 and 2"),
        ("[1]", "a list is not a number between 0 and 2"),
    ],
)
def test_a_temperature_is_a_number_from_0_to_2(faults, value, fault):
    assert faults(f"agents:\n  a:\n    type: llm\n    llm: local\n    temperature: {value}\n") == [
        f"5: agents.a.temperature: {fault}"
    ]
    assert faults(f"{ONE}context:\n  temperature: {value}\n") == [f"3: context.temperature: {fault}"]


@pytest.mark.parametrize("value", ["0", "0.0", "2", "1.25"])
def test_c107_a_temperature_of_0_is_one_that_was_given(load, value):
    config = load(
        f"agents: {{a: {{type: llm, llm: local, temperature: {value}}}}}\ncontext: {{temperature: {value}}}\n"
    )
    assert config.agents["a"].temperature == float(value)
    assert config.context["temperature"] == float(value)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (ONE + "agentz: {}", "2: agentz: unknown key; did you mean agents?"),
        (ONE + "path: x", "2: path: unknown key; expected name, agents, routes, context, hop_limit, limits or history"),
        (
            "agents: {a: {type: llm, llm: local,\n temprature: 1}}",
            "2: agents.a.temprature: unknown key; did you mean temperature?",
        ),
        (
            "agents: {a: {type: tool, code: x,\n temperature: 1}}",
            f"2: agents.a.temperature: unknown key; expected {', '.join(TOOL_KEYS[:-1])} or {TOOL_KEYS[-1]}",
        ),
        (ONE + "history: {message: 1}", "2: history.message: unknown key; did you mean messages?"),
        (
            TOOL + "routes: {r: {from: input, thru: [a], to: output}}",
            "2: routes.r.thru: unknown key; did you mean through?",
        ),
        (
            TOOL + "routes: {r: {from: input, name: r, to: output}}",
            "2: routes.r.name: unknown key; expected from, through, to, until or on_error",
        ),
        (
            TOOL + "routes: {r: {from: input, source: input, to: output}}",
            "2: routes.r.source: unknown key; expected from, through, to, until or on_error",
        ),
        (
            "agents: {a: {type: llm, llm: local, api_key: sk-abcdefghijklm}}",
            "1: agents.a.api_key: unknown key; did you mean api_key_env?",
        ),
    ],
)
def test_an_unknown_key_is_told_the_nearest_known_one(faults, text, fault):
    assert faults(text) == [fault]


@pytest.mark.parametrize(
    ("agent", "fault"),
    [
        ("{type: lm, llm: local}", "agents.a.type: 'lm' is no type of agent; expected llm or tool"),
        ("{type: [llm]}", "agents.a.type: a list is no type of agent; expected llm or tool"),
        ("{type: }", "agents.a.type: nothing is no type of agent; expected llm or tool"),
        ("{llm: local}", "agents.a.type: is missing; expected llm or tool"),
        ("", "agents.a: has no value; expected a mapping of keys to values"),
        ("local", "agents.a: 'local' is not a mapping of keys to values"),
        ("{type: llm}", "agents.a.llm: is missing; expected provider:model, local, or gguf:/path/to/file.gguf"),
        ("{type: tool}", "agents.a.code: is missing; expected the Python code of the tool"),
        ("{type: llm, llm: }", "agents.a.llm: has no value; expected text"),
        ("{type: llm, llm: local, system_prompt: 12}", "agents.a.system_prompt: 12 is not text"),
        ("{type: llm, llm: local, max_tokens: 8.0}", "agents.a.max_tokens: 8.0 is not a whole number"),
        ("{type: llm, llm: local, max_tokens: '8'}", "agents.a.max_tokens: '8' is not a whole number"),
        ("{type: llm, llm: local, max_tokens: true}", "agents.a.max_tokens: true is not a whole number"),
        ("{type: llm, llm: local, max_tokens: 0}", "agents.a.max_tokens: 0 is not greater than 0"),
        ("{type: llm, llm: local, timeout: 0}", "agents.a.timeout: 0 is not greater than 0"),
        ("{type: llm, llm: local, timeout: 1e9}", "agents.a.timeout: 1000000000.0 is more than 86400"),
        ("{type: llm, llm: local, timeout: .nan}", "agents.a.timeout: nan is not a number that can be used"),
        ("{type: llm, llm: local, timeout: soon}", "agents.a.timeout: 'soon' is not a number"),
        ("{type: llm, llm: local, tools: {b: 1}}", "agents.a.tools: a mapping is not a list"),
        ("{type: llm, llm: local, tools: [[b]]}", "agents.a.tools[0]: a list is not text"),
        (
            "{type: llm, llm: local, base_url: 'ftp://x'}",
            "agents.a.base_url: is not an address such as http://127.0.0.1:8080/v1",
        ),
        (
            "{type: llm, llm: local, base_url: 'http://'}",
            "agents.a.base_url: is not an address such as http://127.0.0.1:8080/v1",
        ),
        (
            "{type: llm, llm: local, base_url: 'http://x:y'}",
            "agents.a.base_url: is not an address such as http://127.0.0.1:8080/v1",
        ),
        ("{type: tool, code: ' '}", "agents.a.code: is empty; expected Python code that sets result"),
        ("{type: tool, code: x, time_limit: 0}", "agents.a.time_limit: 0 is not greater than 0"),
        ("{type: tool, code: x, memory_limit: 1.5}", "agents.a.memory_limit: 1.5 is not a whole number"),
        (
            "{type: tool, code: x, parameters: {p: text}}",
            "agents.a.parameters.p: 'text' is not a mapping of keys to values",
        ),
        (
            "{type: tool, code: x, parameters: {p: {minimum: .nan}}}",
            "agents.a.parameters.p.minimum: nan cannot be stored as JSON",
        ),
        (
            "{type: tool, code: x, parameters: {p: {type: int}}}",
            "agents.a.parameters.p.type: 'int' is not one of array, boolean, integer, null, number, object, string",
        ),
    ],
)
def test_one_mistake_in_an_agent_is_one_fault(faults, agent, fault):
    assert faults(f"agents:\n  a: {agent}\n") == [f"2: {fault}"]


@pytest.mark.parametrize("llm", ["gpt-5", "local:", "gguf:", "gguf: ", "openai:", ":x", "openai: gpt", "https//x"])
def test_an_llm_in_no_known_form_is_told_the_three(faults, llm):
    assert faults(f"agents: {{a: {{type: llm, llm: '{llm}'}}}}") == [
        f"1: agents.a.llm: '{llm}' is not provider:model (such as openai:gpt-5-mini), local, or gguf:/path/to/file.gguf"
    ]


@pytest.mark.parametrize(
    "name",
    [
        "/bot",
        "team/",
        "team/sub/bot",
        "bot",
        "Team/Bot",
        '" team/bot "',
        '"team/bot\\n"',
        "''",
        f"team/{'x' * 65}",
        "tëam/bot",
    ],
)
def test_c23_an_actor_name_of_another_form_is_refused_with_the_form(faults, name):
    (line,) = faults(f"{ONE}name: {name}\n")
    assert line.startswith("2: name: actor name ")
    assert "namespace/name" in line


def test_a_syntax_error_in_code_is_named_with_its_own_line(faults):
    text = """\
    agents:
      a:
        type: tool
        code: |

          x = 1
          y = (
          z = 2
      b:
        type: tool
        code: "x = = 1"
    routes: {r: {from: input, through: [a, b], to: output}}
    """
    assert faults(text) == [
        "7: agents.a.code: not valid Python: '(' was never closed",
        "11: agents.b.code: not valid Python: invalid syntax",
    ]


@pytest.mark.parametrize("code", ["-" * 100_000 + "1", "(" * 10_000, "x" + ".y" * 100_000, "a\\0b"])
def test_code_that_python_cannot_parse_is_refused(faults, code):
    (line,) = faults(f'agents: {{a: {{type: tool, code: "{code}"}}}}')
    assert line.startswith("1: agents.a.code: not valid Python: ")
    assert len(line) < 150


def test_odd_escapes_in_code_are_left_to_the_code(load):
    assert load("agents: {a: {type: tool, code: 'result = \"\\d\"'}}").agents["a"].code == 'result = "\\d"'
