"""Changes of a state: made, merged, found again."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from cleveragents.values.merge import Changes, difference, merged

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, "", "x"])
keys = st.sampled_from("abc")
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=3))
states = st.dictionaries(keys, values, max_size=3)
nested = st.lists(keys, min_size=1, max_size=3).map(tuple)
removals = st.lists(keys | nested, max_size=3)


def exactly(value):
    """A form in which 1, 1.0 and True differ."""
    if isinstance(value, dict):
        return {key: exactly(item) for key, item in value.items()}
    if isinstance(value, list):
        return [exactly(item) for item in value]
    return (type(value), value)


@given(states, states)
def test_the_difference_turns_one_state_into_the_other(before, after):
    changes = difference(before, after)
    assert exactly(merged(before, changes.set, changes.removed)) == exactly(after)


@given(states)
def test_a_state_does_not_differ_from_itself(state):
    assert difference(state, copy.deepcopy(state)) == Changes({})
    assert not difference(state, state)


@given(states, states, removals)
def test_merging_changes_neither_state_nor_changes(state, changes, removed):
    before = copy.deepcopy((state, changes, removed))
    merged(state, changes, removed)
    assert (state, changes, removed) == before


@given(states, states, states)
def test_changes_of_different_keys_add_up_in_either_order(state, one, two):
    one = {f"one.{key}": value for key, value in one.items()}
    two = {f"two.{key}": value for key, value in two.items()}
    assert merged(merged(state, one), two) == merged(merged(state, two), one) == merged(state, one | two)


@given(states, states, states)
def test_changes_of_different_nested_keys_add_up_in_either_order(state, one, two):
    one = {"a": {f"one.{key}": value for key, value in one.items()}}
    two = {"a": {f"two.{key}": value for key, value in two.items()}}
    result = merged(merged(state, one), two)
    assert exactly(result) == exactly(merged(merged(state, two), one))
    assert all(exactly(result["a"][key]) == exactly(value) for key, value in (one["a"] | two["a"]).items())


@given(states, states)
def test_merging_twice_is_merging_once(state, changes):
    once = merged(state, changes)
    assert exactly(merged(once, changes)) == exactly(once)


@given(states, nested)
def test_what_was_removed_is_not_there_and_all_else_is(state, gone):
    result = merged(state, {}, [gone])
    found = result
    for key in gone:
        if not isinstance(found, dict) or key not in found:
            break
        found = found[key]
    else:
        raise AssertionError(f"{gone} is still there")
    *parents, last = gone
    parent = state
    for key in parents:
        parent = parent.get(key) if isinstance(parent, dict) else None
    if isinstance(parent, dict) and last in parent:
        changes = difference(result, state)
        assert not changes.removed
        assert exactly(merged(result, changes.set)) == exactly(state)
    else:
        assert exactly(result) == exactly(state)


def test_none_is_a_value_and_removals_come_first():
    assert merged({"a": 1, "b": 2}, {"a": None}) == {"a": None, "b": 2}
    assert merged({"a": {"x": 1}}, {"a": {"y": 2}}, ["a"]) == {"a": {"y": 2}}
    assert merged({"a": {"x": 1, "y": 1}}, {}, [("a", "x")]) == {"a": {"y": 1}}


def test_equal_numbers_of_different_types_are_a_change():
    assert difference({"a": 1, "b": True}, {"a": 1.0, "b": 1}).set == {"a": 1.0, "b": 1}
    assert difference({"a": [1]}, {"a": [True]}).set == {"a": [True]}
