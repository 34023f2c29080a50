"""A file that holds no data to speak of, or none that a configuration may be made of, is refused with its line."""

import subprocess
import sys

import pytest

from cleveragents import load_config
from cleveragents.errors import ConfigError

ONE = "agents: {a: {type: llm, llm: local}}\n"


# --- the file -------------------------------------------------------------------------------------------


def test_a_missing_file_is_named(paper):
    with pytest.raises(ConfigError, match=r"^paper\.yaml: there is no such file$"):
        load_config("paper.yaml")


def test_a_folder_is_no_file(paper):
    paper.mkdir()
    with pytest.raises(ConfigError, match=r"^paper\.yaml: is a folder, not a file$"):
        load_config("paper.yaml")


def test_a_file_under_a_file_cannot_be_read(paper):
    paper.write_text(ONE, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"^paper\.yaml/x: cannot be read: Not a directory$"):
        load_config("paper.yaml/x")


def test_a_name_with_a_nul_is_no_name_of_a_file():
    with pytest.raises(ConfigError, match=r"^a\\x00b: is not the name of a file"):
        load_config("a\0b")


def test_a_file_without_permission_is_named(paper):
    paper.write_text(ONE, encoding="utf-8")
    paper.chmod(0)
    paper.parent.chmod(0o755)
    # Root may read everything, so the child becomes somebody else once it has imported what it needs.
    child = """
import os
from cleveragents.config import load_config
from cleveragents.errors import ConfigError
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    load_config("paper.yaml")
except ConfigError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True)
    assert done.stdout == "paper.yaml: may not be read; check its permissions\n"


def test_a_file_that_is_not_utf_8_is_refused_with_its_line(paper):
    paper.write_bytes(b"agents:\n  a: {type: llm, llm: local, system_prompt: caf\xe9}\n")
    with pytest.raises(ConfigError, match=r"^paper\.yaml:2: is not UTF-8 text \(byte 0xe9\); save it as UTF-8$"):
        load_config("paper.yaml")


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing yet\n", "---\n", "null", "~"])
def test_an_empty_file_is_told_what_it_needs(faults, text):
    assert faults(text) == ["is empty; expected at least the key agents"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [("- a\n- b\n", "a list"), ("[]", "a list"), ("hello", "only 'hello'"), ("3", "only 3"), ("true", "only true")],
)
def test_a_file_that_is_a_list_or_a_single_value_is_refused(faults, text, kind):
    assert faults(text) == [f"1: holds {kind}, not keys and values; expected at least the key agents"]


def test_a_file_larger_than_the_limit_is_not_read(faults):
    assert faults(ONE + "#" * 1_000_000) == ["is larger than 1,000,000 bytes, the most a configuration may have"]


def test_an_endless_file_is_not_read_to_its_end():
    with pytest.raises(ConfigError, match="not a regular file"):
        load_config("/dev/zero")


# --- its YAML -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("agents: {a: {\n", "2: not YAML: while parsing a flow"),
        (
            "agents:\n  a: b: c\n",
            "2: not YAML: a ': ' stands in a value that is not quoted; quote it",
        ),
        ("agents:\n\ta: 1\n", "2: not YAML: a tab stands where only spaces may; indent with spaces"),
        ("  agents: 1\n routes: 2\n", "2: not YAML: this does not fit the lines above; check the indentation"),
        (
            "agents: 'a\n\n\n",
            "4: not YAML: while scanning a quoted scalar (from line 1), found unexpected end of stream",
        ),
        ("agents:\n  a: *b\n", "2: not YAML: undefined alias 'b'; an anchor must come before its aliases"),
        ("agents: 1\nx: a\0b\n", "2: not YAML: the character U+0000 is not allowed"),
        ("agents: 1\n---\nagents: 2\n", "2: a second document begins here; expected one document in a file"),
    ],
)
def test_a_file_that_is_not_yaml_is_refused_with_its_line(faults, text, fault):
    (line,) = faults(text)
    assert line.startswith(fault)


def test_a_double_key_is_refused(faults):
    text = """\
    agents:
      a: {type: llm, llm: local}
      a: {type: llm, llm: "openai:x"}
    """
    assert faults(text) == ["3: agents.a: the key is there twice, first in line 2"]


def test_a_key_that_is_no_text_needs_quotes(faults):
    assert faults("agents:\n  a: {type: llm, llm: local}\n  7: {}\n") == [
        "3: agents: the key '7' is read as int, not as text; put it in quotes"
    ]
    assert faults("agents:\n  a: {type: llm, llm: local}\n  ? [x]\n  : 1\n") == [
        "3: agents: a mapping or a list cannot be a key; expected text"
    ]


@pytest.mark.parametrize(
    ("value", "tag"),
    [
        ("!!python/object/apply:os.system [ls]", "!!python/object/apply:os.system"),
        ("!!binary aGk=", "!!binary"),
        ("!!set {x}", "!!set"),
        ("!mine x", "!mine"),
    ],
)
def test_a_yaml_tag_is_refused_and_nothing_else_is_said_of_its_value(faults, value, tag):
    assert (
        faults(f"agents:\n  a: {{type: llm, llm: local}}\n  b: {value}\n")
        == [
            f"3: agents.b: the YAML tag '{tag}' is not allowed; write a plain value",
            # It is an agent all the same.
            "1: agents: there are 2 agents and no routes; write under routes which gets a message after which",
        ][::-1]
    )


def test_a_number_too_long_to_be_read_is_refused(faults):
    (line,) = faults(f"{ONE}hop_limit: {'9' * 5000}\n")
    assert line.startswith("2: hop_limit: '9999")
    assert line.endswith("…' cannot be read as int")
    assert len(line) < 150


def test_aliases_that_multiply_are_stopped(faults):
    lines = ["a0: &a0 [lol]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))]
    assert faults("\n".join(lines)) == ["1: its aliases repeat more than a configuration may hold"]


@pytest.mark.parametrize("long", ["x" * 50_000, f"{{? {'k' * 50_000} : 1}}"])
def test_aliases_that_repeat_a_long_text_are_stopped(faults, long):
    text = f"{ONE}context:\n  a: &a {long}\n  b: [{', '.join(['*a'] * 10)}]\n"
    assert faults(text) == ["3: its aliases repeat more than a configuration may hold"]


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {b: *a}", "a: &a {<<: *a}"])
def test_an_alias_that_holds_itself_is_stopped(faults, text):
    assert faults(text) == ["1: is nested deeper than 50 levels"]


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 1_000, "- " * 10_000, "? " * 10_000])
def test_deep_nesting_is_stopped(faults, text):
    assert faults(text) == ["1: is nested deeper than 50 levels"]


def test_a_merge_key_needs_a_mapping(faults):
    assert faults("agents: {a: {type: llm, llm: local, <<: 3}}") == [
        "1: agents.a.'<<': expected an alias of a mapping, or a list of them"
    ]
