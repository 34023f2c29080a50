"""What may be stored: converted by one rule or refused with its path; and how text is cleaned."""

import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import json
import math
import uuid
from collections import Counter, OrderedDict, defaultdict, namedtuple
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.errors import InvalidValueError
from cleveragents.values.json import MAX_DEPTH, dump_json, json_object, json_value, load_json
from cleveragents.values.text import clean_text, terminal_text

any_text = st.text(st.characters())  # lone surrogates too
clean = st.text(st.characters(exclude_categories=["Cs"]))
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | clean
json_data = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(clean, inner, max_size=3))
Point = namedtuple("Point", "x y")  # noqa: PYI024 - its plain form is meant


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Key(enum.StrEnum):
    ONE = "one"


class Name(str):
    __slots__ = ()

    def __str__(self):
        return "something else"


@given(json_data)
def test_json_data_comes_back_the_same_after_storing_and_reading(value):
    assert json_value(value) == value
    back = load_json(dump_json(json_value(value)))
    assert back == value
    assert dump_json(back) == dump_json(value)
    assert load_json(dump_json(value).encode()) == value


@given(json_data)
def test_a_stored_value_is_one_line_without_control_characters(value):
    line = dump_json(value)
    assert not any(ord(character) < 32 for character in line)


def test_a_stored_value_shares_nothing_with_the_one_given():
    value: Any = {"outer": [{"inner": []}]}
    stored = json_value(value)
    value["outer"][0]["inner"].append(1)
    assert stored == {"outer": [{"inner": []}]}


@pytest.mark.parametrize(
    ("given_value", "stored"),
    [
        ((1, (2,)), [1, [2]]),
        (Point(1, 2), [1, 2]),
        (defaultdict(list, a=[1]), {"a": [1]}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(a=1), {"a": 1}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (dt.datetime(2026, 1, 1, 2, 3, 4, 5, dt.UTC), "2026-01-01T02:03:04.000005+00:00"),
        (dt.date(2026, 1, 1), "2026-01-01"),
        (dt.time(2, 3), "02:03:00"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (decimal.Decimal("1.50"), "1.50"),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        ({Key.ONE: Level.HIGH}, {"one": 3}),
        (Name("x"), "x"),
        (True, True),
        (2**70, 2**70),
    ],
    ids=repr,
)
def test_values_are_converted_by_one_rule(given_value, stored):
    result = json_value(given_value)
    assert result == stored
    assert type(result) is type(stored)


@pytest.mark.parametrize("number", [np.float64(0.5), np.int64(3), np.bool_(True), np.float32(0.5), np.uint8(7)])
def test_c35_numpy_numbers_become_plain_ones(number):
    stored = json_value({"n": number})["n"]
    assert stored == number
    assert type(stored) in {int, float, bool}


@dataclasses.dataclass
class Thing:
    x: int = 1


@pytest.mark.parametrize(
    "odd",
    [
        math.nan,
        math.inf,
        -math.inf,
        np.float64("nan"),
        decimal.Decimal("NaN"),
        b"x",
        bytearray(b"x"),
        {3},
        frozenset(),
        object(),
        len,
        fractions.Fraction(1, 3),
        1j,
        Thing(),
        np.array([1]),
        range(3),
        {1: "a"},
        {None: 1},
        10**5000,
    ],
    ids=lambda value: f"{type(value).__name__}",
)
def test_c38_what_cannot_be_kept_is_refused_with_its_path(odd):
    with pytest.raises(InvalidValueError) as caught:
        json_value({"items": [1, {"fn": odd}]})
    assert str(caught.value).startswith("items[1].fn: ")
    assert len(str(caught.value).splitlines()) == 1


def test_two_keys_that_become_one_are_refused():
    with pytest.raises(InvalidValueError, match="two keys"):
        json_value(dict.fromkeys("\ud800\udfff", 1))


def test_nesting_has_a_limit_that_reading_and_writing_manage():
    value: Any = []
    for _ in range(MAX_DEPTH):
        value = [value]
    assert load_json(dump_json(json_value(value))) == value
    for _ in range(5):
        value = {"x": value}
    with pytest.raises(InvalidValueError, match="nested"):
        json_value(value)


def test_a_value_that_contains_itself_is_refused():
    value: Any = {}
    value["self"] = [value]
    with pytest.raises(InvalidValueError, match="nested"):
        json_value(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        "[Infinity]",
        "-Infinity",
        "1e999",
        "'x'",
        b"\xff",
        b'"\xed\xa0\x80"',
        "[" * 100_000,
        "1" * 5000,
        b"\0",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_what_is_not_json_is_refused(text):
    with pytest.raises(InvalidValueError):
        load_json(text)


@given(st.text() | st.binary())
def test_reading_never_fails_in_another_way(text):
    try:
        value = load_json(text)
    except InvalidValueError:
        return
    json.dumps(value, allow_nan=False)


def test_json_object_takes_mappings_only():
    assert json_object(None, "metadata") == {}
    assert json_object({"a": (1,)}, "metadata") == {"a": [1]}
    odd_ones: list[Any] = [[], "text", 3, [("a", 1)]]
    for odd in odd_ones:
        with pytest.raises(InvalidValueError, match="metadata"):
            json_object(odd, "metadata")


@given(any_text)
def test_cleaned_text_can_be_written_and_is_clean(text):
    result = clean_text(text)
    result.encode()
    assert clean_text(result) == result


@given(clean)
def test_clean_text_stays_as_it_is(text):
    assert clean_text(text) is text


def test_a_lone_surrogate_becomes_a_mark_and_a_pair_its_character():
    assert clean_text("a\ud800b\udc80") == "a\ufffdb\ufffd"
    assert clean_text("\ud83c\udf89") == "🎉"
    assert json_value({"k\ud800": ["\udfff"]}) == {"k\ufffd": ["\ufffd"]}


@given(st.text())
def test_text_for_a_terminal_gives_no_orders(text):
    shown = terminal_text(text)
    assert "\x1b" not in shown
    assert all(character in "\t\n" or not character < " " for character in shown)
    assert not set("\x7f\x9b\u202d\u202e") & set(shown)
    assert terminal_text(shown) == shown


def test_text_for_a_terminal_keeps_what_is_readable():
    assert terminal_text("Привет 🎉\n\tสวัสดี") == "Привет 🎉\n\tสวัสดี"
    assert terminal_text("a\r\nb") == "a\nb"
    assert terminal_text("\x1b[31m\u202e") == "\\x1b[31m\\u202e"
