"""``CleverAgentsApp`` in programs: names of contexts, event loops, streams of events, what is said of a slip."""

import asyncio
from contextlib import aclosing

import pytest

import cleveragents
from cleveragents import (
    AppConfig,
    CleverAgentsApp,
    ContextBusyError,
    ContextManager,
    InvalidNameError,
    InvalidSettingError,
    LLMError,
    RunResult,
    TextDelta,
    TurnAwaited,
)
from cleveragents.agents import events
from support.scripted_llm import fails, hangs, says


@pytest.fixture
def app(tmp_path, monkeypatch, scripted_llm):
    monkeypatch.setenv("CLEVERAGENTS_HOME", str(tmp_path / "home"))
    agent = {"type": "llm", "llm": "openai:any", "base_url": scripted_llm.url}
    return CleverAgentsApp(AppConfig.model_validate({"agents": {"a": agent}}))


def test_a_context_may_be_given_by_its_name(app, scripted_llm):
    scripted_llm.script(says("Paris."))
    app.run_sync("Capital?", context="notes")
    assert [message.content for message in ContextManager("notes").messages] == ["Capital?", "Paris."]
    with pytest.raises(InvalidNameError):
        app.run_sync("Capital?", context="../notes")


def test_run_sync_in_an_event_loop_says_what_to_write(app):
    async def program():
        app.run_sync("Capital?")

    with pytest.raises(RuntimeError, match=r"await app\.run\(…\)"):
        asyncio.run(program())


@pytest.mark.parametrize("config", [{"agents": {}}, None, 7, b"paper.yaml"])
def test_a_wrong_kind_of_configuration_is_said(config):
    with pytest.raises(InvalidSettingError, match=f"not {type(config).__name__}"):
        CleverAgentsApp(config)


def test_a_stream_gives_events_and_then_the_result(app, scripted_llm):
    async def program():
        return [event async for event in app.stream("Capital?")]

    scripted_llm.script(says(["Pa", "ris."]))
    seen = asyncio.run(program())
    assert [event.text for event in seen if isinstance(event, TextDelta)] == ["Pa", "ris."]
    assert isinstance(seen[-1], RunResult)
    assert seen[-1].output == "Paris."


def test_a_stream_raises_what_the_run_raises(app, scripted_llm):
    async def program():
        async for _ in app.stream("Capital?", context="notes"):
            pass

    scripted_llm.script(fails(400, "no"))
    with pytest.raises(LLMError):
        asyncio.run(program())
    assert [message.content for message in ContextManager("notes").messages] == ["Capital?"]


def test_a_stream_that_is_left_early_ends_the_run_and_keeps_what_came(app, scripted_llm):
    async def program():
        async with aclosing(app.stream("Capital?", context="notes")) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
        return asyncio.all_tasks() - {asyncio.current_task()}

    scripted_llm.script(says(["Pa"], then=hangs))
    assert asyncio.run(program()) == set()
    _, answer = ContextManager("notes").messages
    assert (answer.content, answer.metadata) == ("Pa", {"interrupted": True})


def test_waiting_for_another_run_is_told_after_a_second(app):
    told: list[object] = []
    with ContextManager("busy").turn(), pytest.raises(ContextBusyError):
        app.run_sync("Capital?", context="busy", wait=1.5, listener=told.append)
    assert told == [TurnAwaited("context 'busy'")]


def test_every_event_can_be_imported_from_the_package():
    names = [kind.__name__ for kind in events.AgentEvent.__args__]
    assert set(names) | {"Listener", "AgentEvent"} <= set(cleveragents.__all__)
