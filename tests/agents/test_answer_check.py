"""The check that runs inside the sandbox says its limits itself: they are those of the package."""

from typing import Any

import pytest

from cleveragents.agents.tool import answer_check
from cleveragents.agents.tool.limits import SIZE_LIMIT
from cleveragents.errors import InvalidValueError
from cleveragents.values.json import MAX_DEPTH, MAX_INTEGER_BITS, json_value
from support.tools import call, failure


def nested(depth):
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def found(value):
    """What the check hands back, run as ordinary Python: a list with the value, or its place and what is wrong."""
    return answer_check.__answer([("value", value)])


def refused(value):
    """Why the package cannot store ``value``."""
    with pytest.raises(InvalidValueError) as caught:
        json_value(value, "value")
    return caught.value.reason


@pytest.mark.parametrize("value", [nested(MAX_DEPTH), (1 << MAX_INTEGER_BITS) - 1, 1 - (1 << MAX_INTEGER_BITS)])
def test_what_can_just_be_stored_passes(value):
    assert found(value) == [value] == [json_value(value, "value")]


@pytest.mark.parametrize("value", [nested(MAX_DEPTH + 1), 1 << MAX_INTEGER_BITS, {1}, {1: 2}, nested(3)[0] + [b""]])
def test_what_cannot_be_stored_is_refused_in_the_same_words(value):
    assert found(value)[1] == refused(value)


def test_the_limit_of_size_is_that_of_tools():
    room = SIZE_LIMIT - 8  # each value counts as eight besides its characters
    assert found("x" * room) == ["x" * room]
    assert found("x" * (room + 1)) == ("value", f"larger than {SIZE_LIMIT // 1_000_000} MB")


def test_a_value_that_is_short_is_handed_back_by_the_short_check_and_any_other_is_not():
    for value in ("text", 5, -1.5, True, None, "x" * 100_000, 10**18, [1], {"a": 1}):
        assert answer_check.__plain(value) in ([value], [])
    assert answer_check.__plain([1]) == answer_check.__plain({1}) == answer_check.__plain(10**400) == []
    assert answer_check.__plain("text") == ["text"]


@pytest.mark.parametrize(
    "name", ["type", "list", "len", "repr", "isinstance", "enumerate", "str", "dict", "tuple", "int"]
)
def test_code_may_use_the_checks_names_for_its_own_variables(name):
    code = f"{name} = 5\nresult = [{{'a': (1, 2.5, 'b', None)}}]"
    assert call(code).content == [{"a": [1, 2.5, "b", None]}]
    assert failure(f"{name} = 5\nresult = [1, {{2}}]").startswith("result[1]: a value of type set cannot be stored")
