"""Parameters of tools that are no JSON Schemas, or none that can be used."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from cleveragents.config.tool_parameters import MAX_PATTERNS, parameter_faults

TOOL = "agents:\n  a:\n    type: tool\n    code: result = 1\n    parameters:\n      p:\n        "


@pytest.mark.parametrize(
    ("schema", "fault"),
    [
        ("required: true", "7: agents.a.parameters.p.required: true is not a list of names, each there once"),
        ("type: [string, text]", "7: agents.a.parameters.p.type: 'text' is not one of array, boolean, integer"),
        ("type: []", "7: agents.a.parameters.p.type: a list is not one of array"),
        ("items: [{}]", "7: agents.a.parameters.p.items: a list is not a JSON Schema: a mapping of keywords"),
        ("items: {type: text}", "7: agents.a.parameters.p.items.type: 'text' is not one of"),
        (
            "properties:\n          x:\n            enum: 3",
            "9: agents.a.parameters.p.properties.x.enum: 3 is not a list",
        ),
        (
            "anyOf: [{type: string},\n         {minLength: -1}]",
            "8: agents.a.parameters.p.anyOf[1].minLength: -1 is not",
        ),
        ("anyOf: []", "7: agents.a.parameters.p.anyOf: a list is not a list of JSON Schemas that is not empty"),
        ("multipleOf: 0", "7: agents.a.parameters.p.multipleOf: 0 is not a number greater than 0"),
        ("minimum: '1'", "7: agents.a.parameters.p.minimum: '1' is not a number"),
        ("description: 3", "7: agents.a.parameters.p.description: 3 is not text"),
        ("$ref: http://example.com/x", "7: agents.a.parameters.p.'$ref': a tool's schema stands by itself"),
        ("patternProperties: {}", "7: agents.a.parameters.p.patternProperties: names by pattern are not taken"),
        ("pattern: '('", "7: agents.a.parameters.p.pattern: '(' is no pattern that can be used: unclosed group"),
        ("pattern: '(?=a)b'", "7: agents.a.parameters.p.pattern: '(?=a)b' is no pattern that can be used: look-around"),
        ("pattern: '((a{1,100}){1,100}){1,100}'", "7: agents.a.parameters.p.pattern: a pattern repeats at most 1,000"),
        ("pattern: '((a{1,100}){0}){1,100}'", "7: agents.a.parameters.p.pattern: a pattern repeats at most 1,000"),
        (f"pattern: '{'a' * 201}'", "7: agents.a.parameters.p.pattern: a pattern has at most 200 characters"),
    ],
)
def test_parameters_that_are_no_schema_are_a_fault_with_its_line(faults, schema, fault):
    (found,) = faults(TOOL + schema)
    assert found.startswith(fault)


def test_parameters_may_be_as_rich_as_json_schema_is(load):
    load(
        TOOL + "{type: [object, 'null'], title: T, description: d, default: null, examples: [1], $comment: c,\n"
        "         properties: {x: {type: integer, minimum: 0, exclusiveMaximum: 1.5, multipleOf: 0.1}, y: true},\n"
        "         required: [x], additionalProperties: false, propertyNames: {maxLength: 3, pattern: '^[a-z]{1,3}$'},\n"
        "         oneOf: [{}], not: {const: 3}, if: {}, then: {}, dependentRequired: {x: [y]}, nullable: true,\n"
        "         prefixItems: [{}], contains: {}, maxContains: 2, uniqueItems: true, format: date, x-mine: [1]}\n"
    )


def test_a_file_has_so_many_patterns_at_most(faults):
    tools = "\n".join(
        f"  t{number}: {{type: tool, code: result = 1, parameters: {{p: {{pattern: 'a{number}'}}}}}}"
        for number in range(MAX_PATTERNS + 1)
    )
    found = [line for line in faults(f"agents:\n{tools}") if "pattern" in line]
    assert len(found) == 1
    assert f"there are more than {MAX_PATTERNS} patterns" in found[0]


values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["string", "integer", "x", 0.5, 1.0]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "x"]), inner, max_size=2),
    max_leaves=4,
)
KEYWORDS = [
    "additionalProperties", "allOf", "const", "contains", "default", "dependentRequired", "dependentSchemas",
    "deprecated", "description", "enum", "exclusiveMinimum", "format", "if", "items", "maxLength", "maximum",
    "minContains", "minItems", "minProperties", "multipleOf", "not", "prefixItems", "properties", "propertyNames",
    "readOnly", "required", "title", "type", "unevaluatedItems", "uniqueItems", "examples", "$comment", "$defs",
]  # fmt: skip


@given(st.dictionaries(st.sampled_from(KEYWORDS), values, max_size=2))
def test_what_is_a_schema_is_what_the_library_takes_for_one(schema):
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        valid = False
    else:
        valid = True
    faults = list(parameter_faults({"p": schema}, count(1)))
    assert (not faults) == valid, faults
