"""The form that checksums are taken over: the same in every language (RFC 8785)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.values.canonical import canonical_json, checksum

keys = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | keys
json_data = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4))


# Doubles by their bits and as the standard's appendix prints them.
@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (-5e-324, "-5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (9007199254740992.0, "9007199254740992"),
        (295147905179352830000.0, "295147905179352830000"),
        (9.999999999999997e22, "9.999999999999997e+22"),
        (1e23, "1e+23"),
        (1e21, "1e+21"),
        (999999999999999900000.0, "999999999999999900000"),
        (9.999999999999997e-7, "9.999999999999997e-7"),
        (0.000001, "0.000001"),
        (333333333.33333329, "333333333.3333333"),
        (-0.0000033333333333333333, "-0.0000033333333333333333"),
        (6.0, "6"),
        (1e-5, "0.00001"),
        (0.1 + 0.2, "0.30000000000000004"),
        (123456.789, "123456.789"),
        (2**70, "1180591620717411303424"),
    ],
)
def test_numbers_are_written_as_javascript_does(number, text):
    assert canonical_json(number) == text.encode()


def test_keys_are_sorted_as_utf_16_and_text_is_escaped_only_where_it_must_be():
    value = {"\ufb33": 1, "🎉": 2, "a": '\u20ac\x0f\n\x7f"\\/é', "": None}
    assert canonical_json(value) == '{"":null,"a":"€\\u000f\\n\x7f\\"\\\\/é","🎉":2,"\ufb33":1}'.encode()


@given(json_data)
def test_the_form_does_not_depend_on_how_a_document_was_laid_out(value):
    form = canonical_json(value)
    relaid = json.loads(json.dumps(value, indent=3, sort_keys=True).replace("\n", "\r\n"))
    assert canonical_json(relaid) == form
    again = json.loads(form)
    assert canonical_json(again) == form


@given(json_data, json_data)
def test_different_documents_have_different_checksums(one, two):
    assert (checksum({"x": one}) == checksum({"x": two})) == (canonical_json(one) == canonical_json(two))
    assert checksum({"x": one}).startswith("sha256:")
