"""Agents, tools and routes that do not fit together."""

import pytest

ONE = "agents: {a: {type: llm, llm: local}}\n"
WRITE_ROUTES = "write under routes which gets a message after which"
NO_WAY_OUT = "no way leads from this route out of its loop; add to: output, or a route outside of the loop"


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
