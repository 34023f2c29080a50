"""The check that runs inside the sandbox says its limits itself: they are those of the package."""

import json
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
    """What the check makes of ``value``, run as ordinary Python: that it is done, and the value; or its fault."""
    return json.loads(answer_check.answer([("value", value)]))


def refused(value):
    """Why the package cannot store ``value``."""
    with pytest.raises(InvalidValueError) as caught:
        json_value(value, "value")
    return caught.value.reason


@pytest.mark.parametrize("value", [nested(MAX_DEPTH), (1 << MAX_INTEGER_BITS) - 1, 1 - (1 << MAX_INTEGER_BITS)])
def test_what_can_just_be_stored_passes(value):
    assert found(value) == ["done", value] == ["done", json_value(value, "value")]


@pytest.mark.parametrize("value", [nested(MAX_DEPTH + 1), 1 << MAX_INTEGER_BITS, {1}, {1: 2}, nested(3)[0] + [b""]])
def test_what_cannot_be_stored_is_refused_in_the_same_words(value):
    outcome, _, reason = found(value)
    assert (outcome, reason) == ("refused", refused(value))


def test_the_limit_of_size_is_that_of_tools():
    room = SIZE_LIMIT - 8  # each value counts as eight besides its characters
    larger = ["refused", "value", f"larger than {SIZE_LIMIT // 1_000_000} MB"]
    assert found("x" * room) == ["done", "x" * room]
    assert found("x" * (room + 1)) == larger
    assert found("\n" * (SIZE_LIMIT // 2)) == larger  # two characters each, as JSON


def test_a_value_that_is_short_is_handed_back_by_the_short_check_and_any_other_is_not():
    def short(value):
        return answer_check.short_answer(value)

    for value in ("text", 5, True, None, 10**18 - 1):
        assert json.loads(short(value)) == ["done", value]
    for longer in ("x" * 100_000, 10**19, 1.5, [1], {"a": 1}, {1}):
        assert short(longer) == ""


@pytest.mark.parametrize(
    "name", ["type", "list", "len", "repr", "isinstance", "enumerate", "str", "dict", "tuple", "int"]
)
def test_code_may_use_the_checks_names_for_its_own_variables(name):
    code = f"{name} = 5\nresult = [{{'a': (1, 2.5, 'b', None)}}]"
    assert call(code).content == [{"a": [1, 2.5, "b", None]}]
    assert failure(f"{name} = 5\nresult = [1, {{2}}]").startswith("result[1]: a value of type set cannot be stored")
