"""The members of a large object, whatever the pieces that its text comes in."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cleveragents.errors import InvalidValueError
from cleveragents.values.json_members import json_members

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def members(text, size=3, limit=1000):
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    return {key: list(value) if key == "items" else value for key, value in json_members(pieces, {"items"}, limit)}


@example({"a": 0}, [0.5, 1e-7, -1], 1, False)
@given(st.dictionaries(st.text(), values, max_size=4), st.lists(values, max_size=4), st.integers(1, 9), st.booleans())
def test_what_was_written_is_read_in_pieces_of_any_size(document, items, size, indented):
    document["items"] = items
    text = json.dumps(document, indent=2 if indented else None, ensure_ascii=indented)
    assert members(f" {text}\n", size, len(text) + 1) == document


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no object"),
        ("[1]", "not a JSON object"),
        ("{", "broken off"),
        ('{"a": 1', "expected ','"),
        ('{"a": 1,}', "broken off, or is none"),
        ('{"a" 1}', "expected ':'"),
        ("{1: 1}", "a key is not text"),
        ('{"a": 1} x', "something follows"),
        ('{"a": 1, "a": 1}', "'a' comes twice"),
        ('{"a": {"b": 1, "b": 1}}', "'b' comes twice"),
        ('{"items": {}}', "items: must be a list"),
        ('{"items": [1 2]}', "expected ','"),
        ('{"a": NaN}', "NaN is not allowed"),
        ('{"a": 1e999}', "too large"),
        (f'{{"a": {"[" * 100_000}', "nested deeper"),
        (f'{{"a": "{"x" * 2000}"}}', "more than 1,000 characters"),
        (f'{{"items": ["{"x" * 2000}"]}}', "more than 1,000 characters"),
    ],
)
def test_what_is_no_object_is_refused(text, reason):
    with pytest.raises(InvalidValueError, match=reason):
        members(text, 100_000 if "nested" in reason else 3)
