"""Keys and passwords are never shown, whatever a server says and wherever they stand by mistake."""

import base64

import pytest

from cleveragents import LLMAgent
from cleveragents.errors import LLMError
from support.llms import KEY, ask, failure
from support.scripted_llm import fails


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_no_key_is_ever_shown_even_when_the_server_repeats_it(scripted_llm, agent, monkeypatch, status):
    monkeypatch.setenv("ODDLY_NAMED", "correct horse battery")
    monkeypatch.setenv("SOMEBODYS_TOKEN", "tok-987654321")
    said = f"key correct horse battery {KEY} Bearer abcdefgh.ijkl tok-987654321 sk-abcd****wxyz"
    scripted_llm.script(*[fails(status, said)] * 3)
    text = failure(agent(api_key_env="ODDLY_NAMED"))
    for secret in ("correct", "battery", "0123456789", "abcdefgh", "987654321", "wxyz"):
        assert secret not in text


def test_half_of_a_key_is_not_left_where_a_servers_text_is_cut(scripted_llm, agent, monkeypatch):
    monkeypatch.setenv("ODDLY_NAMED", "correct horse battery")
    for filler in range(270, 300):
        scripted_llm.script(fails(400, "x" * filler + "correct horse battery"))
        assert "corr" not in failure(agent(api_key_env="ODDLY_NAMED"))


def test_user_and_password_of_an_address_are_not_shown(scripted_llm, agent):
    credentials = base64.b64encode(b"me:pa55 word").decode()
    address = scripted_llm.url.replace("//", "//me:pa55%20word@")
    scripted_llm.script(fails(400, f"no {address} pa55 word Basic {credentials} {credentials}"))
    text = failure(agent(base_url=address))
    for secret in ("pa55", "quiet", credentials):
        assert secret not in text


@pytest.mark.parametrize("key", ["schlüssel-0123456789", "two\nlines-0123456789", "bell\x07-0123456789"])
def test_a_key_that_cannot_be_one_is_refused_and_not_shown(scripted_llm, agent, monkeypatch, key):
    monkeypatch.setenv("MY_KEY", key)
    text = failure(agent(api_key_env="MY_KEY"))
    assert "the key in MY_KEY contains a character that no key has" in text
    assert scripted_llm.requests == []


@pytest.mark.parametrize(
    "key", ["sk-abcdefgh1234", "openai:sk-abcdefgh1234", "ghp_abcdefgh12345678", "AIza" + "x" * 35]
)
def test_a_key_in_place_of_the_llms_name_is_not_shown(monkeypatch, key):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(LLMError) as caught:
        ask(LLMAgent("planner", key))
    assert str(caught.value).startswith("agent planner: llm ")
    assert "***" in str(caught.value)
    assert "abcdefgh1234" not in str(caught.value)
    assert "x" * 10 not in str(caught.value)
