"""Variables are expanded where they belong, and neither they nor keys are ever shown."""

import pytest


def test_a_variable_that_is_not_set_is_named_with_its_line(faults, monkeypatch):
    monkeypatch.delenv("NO_SUCH_URL", raising=False)
    monkeypatch.setenv("EMPTY_URL", "")
    for name in ("NO_SUCH_URL", "EMPTY_URL"):
        assert faults(f"agents:\n  a: {{type: llm, llm: local,\n      base_url: '${{{name}}}/v1'}}\n") == [
            f"3: agents.a.base_url: the environment variable {name} is not set"
        ]


@pytest.mark.parametrize("text", ["${", "${}", "${A-B}", "${1}", "http://x/${HOME"])
def test_what_begins_like_a_variable_must_be_one(faults, text):
    assert faults(f"agents: {{a: {{type: llm, llm: local, base_url: '{text}'}}}}") == [
        "1: agents.a.base_url: '${' does not begin the name of an environment variable such as ${LLM_URL}"
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("base_url", "hunter2 hunter2"),
        ("base_url", "ftp://user:hunter2@host"),
        ("base_url", "http://[hunter2"),
        ("base_url", "http://hunter2\udc80 "),
        ("base_url", "http://host/v1?key=hunter2"),
        ("base_url", "http://host/v1#hunter2"),
        ("llm", "openai:hunter2"),
    ],
)
def test_what_a_variable_holds_is_never_shown(faults, monkeypatch, key, value):
    monkeypatch.setenv("SECRET_PLACE", value)
    agent = {"type": "llm", "llm": "local", key: "${SECRET_PLACE}"}
    (line,) = faults(f"agents: {{a: {agent}}}\n")
    assert line.startswith(f"1: agents.a.{key}: ")
    assert "hunter2" not in line


def test_the_name_of_an_llm_is_written_out(faults, monkeypatch):
    monkeypatch.setenv("X_MODEL", "hunter2hunter2")
    assert faults("agents: {a: {type: llm, llm: 'openai:${X_MODEL}'}}") == [
        "1: agents.a.llm: 'openai:${X_MODEL}' has a variable, as only base_url can; write the name out"
    ]


@pytest.mark.parametrize("address", ["http://host/v1?key=secret", "http://host/v1#secret", "http://host/v1?"])
def test_an_address_has_no_query_and_no_fragment(faults, address):
    assert faults(f"agents: {{a: {{type: llm, llm: local, base_url: '{address}'}}}}") == [
        "1: agents.a.base_url: has a ? or a #, after which the paths of requests would be lost; leave out what follows"
    ]


@pytest.mark.parametrize(
    "value",
    [
        "sk-abcdefgh12345678",
        "sk_live_abcdefgh12345678",
        "gsk_abcdefgh12345678",
        "AIzaSyA1234567890abcdefghijk",
        "0123456789abcdef0123456789abcdef",
        "A1B2C3D4E5F6A1B2C3D4E5F6",
        "not a name",
        "",
    ],
)
def test_a_key_in_place_of_its_variable_is_refused_and_not_shown(faults, value):
    (line,) = faults(f"agents:\n  a:\n    type: llm\n    llm: local\n    api_key_env: '{value}'\n")
    assert line == (
        "5: agents.a.api_key_env: is not the name of an environment variable such as OPENAI_API_KEY; "
        "the key itself belongs in the variable, never in a file"
    )


def test_a_key_in_any_other_place_is_not_shown_either(faults):
    key = "sk-abcdefgh12345678"
    lines = faults(
        f"""\
        agents:
          a: {{type: llm, llm: {key}, tools: [{key}], temperature: {key}, {key}: 1}}
        routes: {{r: {{from: {key}, through: [{key}], to: output}}}}
        """
    )
    assert len(lines) == 6
    assert not any(key in line for line in lines)


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "my_key", "K", "_X", "AZURE_OPENAI_API_KEY_2"])
def test_the_name_of_a_variable_is_accepted(load, name):
    assert load(f"agents: {{a: {{type: llm, llm: local, api_key_env: {name}}}}}").agents["a"].api_key_env == name
