"""What a bad file is told: every fault at once, each with its line, its key, and what was expected."""

import pytest

from cleveragents import load_config
from cleveragents.config import OPERATORS
from cleveragents.errors import ConfigError

ONE = "agents: {a: {type: llm, llm: local}}\n"
TOOL_KEYS = ["type", "description", "code", "parameters", "time_limit", "memory_limit", "on_error"]
NO_STEP = f"is no step of a route; expected the name of an agent, or one operator ({', '.join(OPERATORS)})"
WRITE_ROUTES = "write under routes which gets a message after which"
NO_WAY_OUT = "no way leads from this route out of its loop; add to: output, or a route outside of the loop"
TOOL = "agents: {a: {type: tool, code: result = 1}}\n"


# --- its keys and values --------------------------------------------------------------------------------


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
        (ONE + "path: x", "2: path: unknown key; expected name, agents, routes, context, hop_limit or history"),
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
        ("{type: lm, llm: local, x: 1}", "agents.a.type: 'lm' is no type of agent; expected llm or tool"),
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
            "agents.a.parameters.p: the type 'int' is not one of array, boolean, integer, null, number, object, string",
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


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        ("filter: 'x +'", "[0].filter: not valid Python: invalid syntax"),
        ("map: ''", "[0].map: is empty; expected a Python expression"),
        ("map: 3", "[0].map: 3 is not text"),
        ("map: ", "[0].map: has no value; expected text"),
        ("mpa: x", "[0].mpa: unknown operator; did you mean map?"),
        ("ask: x", f"[0].ask: unknown operator; expected {', '.join([*OPERATORS][:12])} or another"),
        ("buffer: {}", "[0].buffer: has no limit; expected count, seconds or both"),
        ("buffer: {cuont: 3}", "[0].buffer.cuont: unknown key; did you mean count?"),
        (
            "parallel: {agents: [a], join: some}",
            "[0].parallel.join: 'some' is not one of 'all', 'first' or 'majority'",
        ),
        ("buffer: 3", "[0].buffer: 3 is not a mapping of keys to values"),
        ("take: 0", "[0].take: 0 is not greater than 0"),
        ("throttle: 0", "[0].throttle: 0 is not greater than 0"),
        ("throttle: 0.0000001", "[0].throttle: 1e-07 is less than a microsecond"),
        ("delay: soon", "[0].delay: 'soon' is not a number"),
        ("scan: {}", "[0].scan.value: is missing; expected a Python expression"),
        ("scan: {value: message, seed: .nan}", "[0].scan.seed: nan cannot be stored as JSON"),
        ("parallel: {agents: []}", "[0].parallel.agents: is empty; expected at least one agent"),
        ("parallel: {agents: [a, b]}", "[0].parallel.agents[1]: there is no agent 'b'; expected a"),
        ("parallel: {agents: [a, a]}", "[0].parallel.agents: 'a' is in the list twice"),
        ("switch: []", "[0].switch: is empty; expected at least one case"),
        ("switch: [{agent: a, if: x}]", "[0].switch[0].if: unknown key; expected when or agent"),
        ("switch: [{agent: b}]", "[0].switch[0].agent: there is no agent 'b'; expected a"),
        ("retry: {attempts: 100}", "[0].retry.attempts: 100 is more than 20"),
        (
            "{filter: x, map: y}",
            f"[0]: a mapping of 2 keys {NO_STEP}",
        ),
        (
            "{}",
            f"[0]: a mapping of 0 keys {NO_STEP}",
        ),
        ("3", f"[0]: 3 {NO_STEP}"),
        ("[a]", f"[0]: a list {NO_STEP}"),
        ("b", "[0]: there is no agent 'b'; expected a"),
    ],
)
def test_one_mistake_in_a_route_is_one_fault(faults, step, fault):
    assert faults(f"{TOOL}routes:\n  r:\n    from: input\n    to: output\n    through:\n      - {step}\n") == [
        f"7: routes.r.through{fault}"
    ]


@pytest.mark.parametrize(
    "steps", ["[timeout: 1]", "[take: 1, retry: {attempts: 2}]", "[a, buffer: {count: 2}, timeout: 1]"]
)
def test_an_operator_for_the_step_before_it_needs_such_a_step(faults, steps):
    (line,) = faults(f"{TOOL}routes: {{r: {{from: input, through: {steps}, to: output}}}}")
    assert line.endswith(" must follow the step it is for: an agent, parallel, switch, filter, map or scan")


def test_through_is_a_list(faults):
    assert faults(f"{TOOL}routes: {{r: {{from: input, through: a, to: output}}}}") == [
        "2: routes.r.through: 'a' is not a list, such as [name]"
    ]


# --- how the parts fit together -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("routes", "found"),
    [
        (
            "r: {from: input, through: [agnt], to: output}",
            ["2: routes.r.through[0]: there is no agent 'agnt'; did you mean agent?"],
        ),
        ("r: {from: nowhere, to: output}", ["2: routes.r.from: there is no route 'nowhere'; expected input or r"]),
        (
            "r: {from: [input, inptu], to: output}",
            ["2: routes.r.from[1]: there is no route 'inptu'; did you mean input?"],
        ),
        ("r: {from: agent, to: output}", ["2: routes.r.from: 'agent' is an agent, not a route; expected input or r"]),
        (
            "r: {from: output, to: output}",
            ["2: routes.r.from: output is where every network ends; expected input or r"],
        ),
        ("r: {from: input, to: ouput}", ["2: routes.r.to: there is no route 'ouput'; did you mean output?"]),
        ("r: {from: input, to: input}", ["2: routes.r.to: input is where every network begins; expected output or r"]),
        ("r: {from: [], to: output}", ["2: routes.r.from: is empty; expected input or the name of a route"]),
        (
            "r: {from: input, to: output, until: message}",
            ["2: routes.r.until: nothing leads from this route back to it; remove until, or add the way back"],
        ),
        (
            "{r: {from: input, to: [s, output]}, s: {from: s, to: [r, s], until: message}}",
            [f"2: routes.s.until: {NO_WAY_OUT}"],
        ),
        ("r: {from: [input, r], to: output, until: x =}", ["2: routes.r.until: not valid Python: invalid syntax"]),
        (
            "r: {from: input, to: output, on_error: agnt}",
            ["2: routes.r.on_error: there is no agent 'agnt'; did you mean agent?"],
        ),
        (
            "r: {from: input, to: output, on_error: retry}",
            ["2: routes.r.on_error: there is no agent 'retry'; expected fail, skip or agent"],
        ),
        ("r: {from: input, to: output, on_error: [skip]}", ["2: routes.r.on_error: a list is not text"]),
        ("r: {to: output}", ["2: routes.r.from: is missing; expected input, or the name of a route"]),
        ("r: {from: [input, input], to: output}", ["2: routes.r.from: 'input' is in the list twice"]),
        ("r: {from: input}", ["2: routes.r: leads nowhere; add to: output, or name it in another route's from"]),
        (
            "{r: {from: input, to: output}, s: {from: input}}",
            ["2: routes.s: leads nowhere; add to: output, or name it in another route's from"],
        ),
        ("r: {from: r, to: output}", ["2: routes: no route begins at input; write from: input in the first one"]),
        (
            "{r: {from: input}, s: {from: r, to: r}}",
            ["2: routes: no route leads to output; add to: output to the last one"],
        ),
        (
            "{r: {from: input, to: output}, s: {from: t}, t: {from: s, to: output}}",
            [
                "2: routes.s: never gets a message: nothing leads to it from input",
                "2: routes.t: never gets a message: nothing leads to it from input",
            ],
        ),
        (
            "input: {from: input, to: output}",
            ["2: routes.input: input is where every network begins; give the route another name"],
        ),
        (
            "output: {from: input, to: output}",
            ["2: routes.output: output is where every network ends; give the route another name"],
        ),
        (
            "'my route': {from: input, to: output}",
            ["2: routes.'my route': a name consists of at most 64 letters (a to z), digits, '_' and '-'"],
        ),
        ("r: through", ["2: routes.r: 'through' is not a mapping of keys to values"]),
        ("[r]", ["2: routes: a list is not a mapping of keys to values"]),
        ("", ["2: routes: has no value; expected a mapping of keys to values"]),
    ],
)
def test_routes_must_fit_together(faults, routes, found):
    routes = f"{{{routes}}}" if routes[:1] not in {"{", "[", ""} else routes
    assert faults(f"agents: {{agent: {{type: tool, code: result = 1}}}}\nroutes: {routes}\n") == found


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ("a", "fail", "1: agents.a.on_error: an agent cannot stand in for itself"),
        ("c", "fail", "1: agents.a.on_error: there is no agent 'c'; expected fail, skip, a or b"),
        (
            "b",
            "a",
            f"1: agents: every agent stands in for another, and no routes; {WRITE_ROUTES}",
        ),
    ],
)
def test_an_agent_that_stands_in_for_another_must_be_there(faults, first, second, found):
    agents = [f"{name}: {{type: tool, code: x, on_error: {other}}}" for name, other in (("a", first), ("b", second))]
    assert found in faults(f"agents: {{{', '.join(agents)}}}")


def test_an_agent_that_only_stands_in_needs_no_route(load):
    config = load("agents: {a: {type: tool, code: x, on_error: b}, b: {type: tool, code: y, on_error: skip}}")
    assert [route.through for route in config.network()] == [("a",)]
    assert config.on_error == {"a": "b", "b": "skip"}


@pytest.mark.parametrize(
    ("tools", "fault"),
    [
        ("[count]", "agents.a.tools[0]: there is no agent 'count'; did you mean counts?"),
        ("other", "agents.a.tools: 'other' is an llm agent; only agents of type tool can be tools"),
        ("[a]", "agents.a.tools[0]: 'a' is an llm agent; only agents of type tool can be tools"),
        ("[counts, counts]", "agents.a.tools: 'counts' is in the list twice"),
    ],
)
def test_tools_are_tool_agents_of_the_file(faults, tools, fault):
    text = f"""\
    agents:
      a: {{type: llm, llm: local, tools: {tools}}}
      other: {{type: llm, llm: local}}
      counts: {{type: tool, code: result = 1}}
    routes: {{r: {{from: input, through: [a, other], to: output}}}}
    """
    assert faults(text) == [f"2: {fault}"]


@pytest.mark.parametrize("name", ["my agent", "a.b", "é", "", "x" * 65, "a\u202eb"])
def test_an_agents_name_is_one_that_every_provider_accepts(faults, name):
    (line,) = faults(f'agents: {{"{name}": {{type: llm, llm: local}}}}')
    assert line.endswith("a name consists of at most 64 letters (a to z), digits, '_' and '-'")
    assert line.isprintable()


def test_a_file_without_agents_is_refused(faults):
    assert faults("context: {a: 1}") == ["agents: is missing; expected the agents, by name"]
    assert faults("agents: {}") == ["1: agents: is empty; expected at least one agent"]
    assert faults("agents:") == ["1: agents: has no value; expected a mapping of keys to values"]


def test_several_agents_need_routes(faults):
    assert faults("agents: {a: {type: llm, llm: local}, b: {type: tool, code: result = 1}}") == [
        "1: agents: there are 2 agents and no routes; write under routes which gets a message after which"
    ]


def test_a_value_of_the_context_must_be_json(faults):
    assert faults(f"{ONE}context:\n  a: .nan\n  b:\n    - 1\n    - {{c: -.inf}}\n") == [
        "3: context.a: nan cannot be stored as JSON",
        "6: context.b[1].c: -inf cannot be stored as JSON",
    ]


# --- all together ---------------------------------------------------------------------------------------


def test_all_faults_of_a_file_come_at_once_in_order_of_line(faults):
    text = """\
    name: Paper
    agents:
      planner:
        type: llm
        llm: gpt
        temperature: 3
        temprature: 3
        tools: [count]
      critic:
        type: critic
      planner: {}
      counter:
        type: tool
        code: |
          result = (
    routes:
      draft:
        from: nowhere
        through: [planner, writer]
      input: {from: input, to: output}
    context: {temperature: hot}
    hop_limit: 0
    history: {messages: -1}
    """
    assert [line.partition(" ")[0] + " " + line.split(" ")[1] for line in faults(text)] == [
        "1: name:",
        "5: agents.planner.llm:",
        "6: agents.planner.temperature:",
        "7: agents.planner.temprature:",
        "8: agents.planner.tools[0]:",
        "10: agents.critic.type:",
        "11: agents.planner:",
        "15: agents.counter.code:",
        "18: routes.draft.from:",
        "19: routes.draft.through[1]:",
        "20: routes.input:",
        "21: context.temperature:",
        "22: hop_limit:",
        "23: history.messages:",
    ]


def test_a_fault_is_one_short_line_whatever_the_file_holds(faults):
    long, wild = "x" * 900, '"a\\n\\e[31m\\u202e\\u2028"'
    lines = faults(
        f"""\
        agents:
          a: {{type: {long * 5}}}
          {long}: {{type: {wild}}}
          {wild}: {{type: llm, llm: {wild}, {wild}: 1}}
        routes:
          r: {{from: {wild}, through: [{wild}, {{{long}: 1}}], to: [{long * 5}]}}
        {long}: {wild}
        """
    )
    assert len(lines) == 10
    assert all(line.isprintable() and len(line) < 400 for line in lines)


def test_a_file_name_cannot_break_the_line_either(tmp_path):
    path = tmp_path / "a\nb\x1b[31m.yaml"
    path.write_text("agents: 3", encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        load_config(path)
    assert len(raised.value.faults) == 1
    assert raised.value.faults[0].isprintable()
