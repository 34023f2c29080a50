"""Whatever a file holds, it loads or is refused with its faults; nothing else ever comes out."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cleveragents import load_config
from cleveragents.errors import ConfigError
from support.campaign import campaign

EXAMPLES = [path.read_text(encoding="utf-8") for path in (Path(__file__).parents[2] / "examples").glob("*.yaml")]

# What YAML and configurations are made of, so that random text gets past the first character.
KEYS = ("agents: ", "routes: ", "context: ", "type: llm", "type: tool", "llm: local", "code: x", "temperature: ", "a: ")
MORE_KEYS = ("from: ", "through: ", "to: ", "filter: ", "name: ", "tools: ", "history: ", "parameters: ", "b: ")
MARKS = (": ", "- ", "[", "]", "{", "}", ", ", "? ", "#", "'", '"', "|\n  ", ">-\n  ", "|9", "---\n", "...\n", "\\")
ALIASES = ("&a ", "*a", "<<: ", "<<: *a", "%YAML 1.1\n---\n", "%TAG ! x:\n---\n", "!", "!!int ", "!!float ", "!!bool ")
TAGS = ("!!null ", "!!str ", "!!omap ", "!!set ", "!!binary ", "!!timestamp ", "!!python/object:x ", "!<")
VALUES = ("a", "input", "output", "~", "1", "-1", "1e999", ".nan", "0x", "0o9", "2026-01-31", "1:30", "yes", "true")
TEXT = ("${", "${HOME}", "\\ud800", "é", "🎉", "sk-abcdefgh12345678")
ODD = ("\t", "\r", "\0", "\x85", "\u2028", "\u202e", "\ufeff")
PIECES = st.sampled_from(["\n", "\n  ", "\n    ", *KEYS, *MORE_KEYS, *MARKS, *ALIASES, *TAGS, *VALUES, *TEXT, *ODD])
ANY_TEXT = st.text(max_size=200) | st.lists(PIECES, max_size=30).map("".join)


SETTINGS: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@st.composite
def damaged_examples(draw):
    """An example with a few pieces put in, or put in place of something."""
    text = draw(st.sampled_from(EXAMPLES))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        text = text[:start] + draw(PIECES) + text[start + draw(st.sampled_from([0, 1, 3, 10, 40])) :]
    return text


@pytest.mark.campaign
@settings(
    max_examples=campaign(short=200, long=4_000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(text=ANY_TEXT | damaged_examples())
def test_any_text_loads_or_is_refused_with_its_faults(tmp_path, text):
    path = tmp_path / "any.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    outcome(path)


@pytest.mark.campaign
@settings(
    max_examples=campaign(short=100, long=2_000),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(content=st.binary(max_size=100))
def test_any_bytes_load_or_are_refused_with_their_faults(tmp_path, content):
    path = tmp_path / "any.yaml"
    path.write_bytes(content)
    outcome(path)


def outcome(path):
    try:
        config, faults = load_config(path), []
    except ConfigError as error:
        config, faults = None, error.faults
    assert (config is None) == bool(faults)
    assert config is None or config.network()
    assert all(line.isprintable() and len(line) < 1000 and "pydantic" not in line for line in faults)
