"""What is told of a step of a route that is none."""

import pytest

from cleveragents.config import OPERATORS

NO_STEP = f"is no step of a route; expected the name of an agent, or one operator ({', '.join(OPERATORS)})"
TOOL = "agents: {a: {type: tool, code: result = 1}}\n"


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
