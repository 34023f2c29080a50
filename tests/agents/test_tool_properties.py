"""Whatever code does to a context, its reply turns the context before into the context after."""

import asyncio
import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleveragents.agents.tool.sandbox import evaluate
from cleveragents.values.merge import merged
from support.campaign import campaign
from support.tools import call

KEYS = st.sampled_from(["a", "b", "c", "é", "x y", "1", ""])
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8
)
CONTEXTS = st.dictionaries(KEYS, VALUES, max_size=5)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.lists(KEYS, min_size=1, max_size=3), VALUES),
        st.tuples(st.just("pop"), st.lists(KEYS, min_size=1, max_size=3), st.none()),
        st.tuples(st.just("append"), st.lists(KEYS, min_size=1, max_size=2), VALUES),
        st.tuples(st.just("replace"), st.just([]), CONTEXTS),
    ),
    max_size=6,
)

CODE = """
for action, path, value in message:
    place = context
    for key in path[:-1]:
        place = place.get(key) if isinstance(place, dict) else None
    if action == "replace":
        context = value
    elif isinstance(place, dict):
        if action == "set":
            place[path[-1]] = value
        elif action == "pop":
            place.pop(path[-1], None)
        elif isinstance(place.get(path[-1]), list):
            place[path[-1]].append(value)
result = context
"""


def in_plain_python(context, steps):
    names = {"message": copy.deepcopy(steps), "context": copy.deepcopy(context)}
    exec(CODE, names)  # noqa: S102 - the model that the sandbox is compared with
    return names["result"]


def exact(value):
    """``value`` so that 1, 1.0 and True differ, and -0.0 and 0.0 do."""
    if isinstance(value, dict):
        return {key: exact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [exact(item) for item in value]
    return (type(value).__name__, repr(value))


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("unsafe", "examples"),
    [(False, campaign(short=100, long=2_000)), (True, campaign(short=15, long=100))],
    ids=["sandboxed", "unsafe"],
)
def test_a_reply_turns_the_context_into_what_plain_python_makes_of_it(unsafe, examples):
    @settings(max_examples=examples, deadline=None, database=None)
    @given(CONTEXTS, STEPS)
    def check(context, steps):
        before = copy.deepcopy(context)
        steps = [list(step) for step in steps]
        expected = in_plain_python(context, steps)
        reply = call(CODE, steps, context, unsafe=unsafe)
        assert context == before
        assert exact(reply.content) == exact(expected)
        after = merged(context, reply.changes, reply.removed)
        assert after == expected
        assert _kinds(after) == _kinds(expected)

    check()


def _kinds(value):
    """The types in ``value``: what tells 1 from True. The sign of a zero is not told apart as a change."""
    if isinstance(value, dict):
        return {key: _kinds(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_kinds(item) for item in value]
    return type(value)


@pytest.mark.campaign
@settings(max_examples=campaign(short=100, long=2_000), deadline=None, database=None)
@given(VALUES)
def test_any_json_value_passes_through_an_expression_unchanged(value):
    assert exact(asyncio.run(evaluate("message", {"message": value}))) == exact(value)
