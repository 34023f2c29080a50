"""What several of the tests of llm agents share."""

import pytest

from cleveragents import LLMAgent
from support.llms import KEY


@pytest.fixture
def agent(scripted_llm, monkeypatch):
    """Makes agents that ask the scripted server with a key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def make(llm="openai:gpt-5-mini", **settings):
        return LLMAgent("planner", llm, **{"base_url": scripted_llm.url, **settings})

    return make
