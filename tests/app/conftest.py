"""What tests of runs on sessions need."""

import pytest

from cleveragents import AppConfig, CleverAgentsApp
from support.strict import SYSTEM
from support.turns import COUNT


@pytest.fixture
def session_id(sessions):
    return sessions.create("local/agents").session_id


@pytest.fixture
def asking(scripted_llm, sessions):
    """An application with one llm agent, and a tool, on the scripted server."""

    def make(history=None, **settings):
        agent = {"type": "llm", "llm": "openai:any", "base_url": scripted_llm.url, "system_prompt": SYSTEM}
        agents = {"assistant": {**agent, "tools": ["count"], **settings}, "count": COUNT}
        config = {"agents": agents, "history": {"window": history} if history else {}}
        return CleverAgentsApp(AppConfig.model_validate(config), sessions=sessions)

    return make
