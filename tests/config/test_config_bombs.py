"""Files made to take time or memory: each is answered at once, with few faults."""

import pytest

from cleveragents.errors import ConfigError

ONE = "agents: {a: {type: llm, llm: local}}\n"
TOO_MANY = "holds more than 20,000 keys and values, the most a configuration may have"


@pytest.mark.parametrize("text", [r'name: "\U7fffffff"', r'name: "\UFFFFFFFF"'])
def test_an_escape_that_is_no_character_is_told(faults, text):
    assert faults(f"{ONE}\n{text}\n") == [
        r"3: not YAML: a number here is too large; an escape such as \U0001F600 ends at 10FFFF"
    ]


def test_the_number_of_a_yaml_version_may_be_absurd(faults):
    (line,) = faults(f"%YAML {'9' * 9_000}.1\n---\n{ONE}")
    assert line.startswith("1: not YAML: a number here is too large")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("context:\n" + "  k: 1\n" * 40_000, 9_997),
        (f"context: {{a: [{'1,' * 400_000}]}}\n", 2),
        (f"context: {{a: [{'[],' * 300_000}]}}\n", 2),
        (f"context: {{b: &b 1, a: [{'*b ,' * 240_000}]}}\n", 2),
        (f"routes: {{r: {{from: input, through: [{'{b: 1},' * 100_000}]}}}}\n", 2),
    ],
    ids=["equal keys", "items", "lists", "aliases", "steps"],
)
def test_more_values_than_a_configuration_has_are_not_read(faults, text, line):
    assert faults(ONE + text) == [f"{line}: {TOO_MANY}"]


def test_a_tag_without_an_end_is_stopped(faults):
    assert faults(f"{ONE}context: {'!' * 900_000}\n") == ["2: not YAML: a tag of 1,000 characters or more"]


@pytest.mark.parametrize(
    "text",
    [
        ONE + "context:\n" + "  k: 1\n" * 3_000,
        ONE + "context:\n  a:\n" + "   - !x y\n" * 3_000,
        ONE + "".join(f"k{number}: 1\n" for number in range(3_000)),
        "agents:\n" + "".join(f"  k{number}: 1\n" for number in range(3_000)),
        ONE + "routes:\n" + "".join(f"  r{n}: {{from: x{n}, to: output}}\n" for n in range(3_000)),
    ],
    ids=["equal keys", "tags", "unknown keys", "agents", "routes"],
)
def test_a_hundred_faults_are_told(load, text):
    with pytest.raises(ConfigError) as raised:
        load(text)

    assert len(raised.value.faults) == 101
    assert raised.value.faults[-1] == "paper.yaml: there are more faults than these 100"
