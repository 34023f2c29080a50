"""What an llm says in several steps: each is stored once, later steps of a route get the answer, people get it all."""

import asyncio

import pytest

from cleveragents import AppConfig, CleverAgentsApp, ContextManager, TextDelta, ToolCalled
from cleveragents.errors import LLMError
from support.scripted_llm import calls, fails, hangs, says
from support.strict import SYSTEM, strictly

SHOUT = {"map": "message.upper() + '!'"}


@pytest.fixture
def network(scripted_llm, sessions):
    """An application whose agents ``one`` and ``two`` are llms that may count, joined by ``routes``."""

    def make(**routes):
        llm = {"type": "llm", "llm": "openai:any", "base_url": scripted_llm.url, "tools": ["count"]}
        agents = {"one": llm, "two": llm, "count": {"type": "tool", "code": "result = len(message)"}}
        config = {"agents": {name: agents[name] for name in ("one", "two", "count")}, "routes": routes}
        return CleverAgentsApp(AppConfig.model_validate(config), sessions=sessions)

    return make


def route(*through, source="input"):
    return {"from": source, "through": list(through), "to": "output"}


def looks(text, message="abc"):
    return says(text, calls=[("count", {"message": message})])


def stored(sessions, session_id):
    return [(message.agent, message.content) for message in sessions.messages(session_id)]


def test_a_map_gets_the_answer_and_what_was_said_before_it_is_stored_once(network, sessions, session_id, scripted_llm):
    scripted_llm.script(looks("Let me see."), says("Three."))
    result = network(all=route("one", SHOUT)).run_sync("How long?", session_id=session_id)
    assert result.output == "THREE.!"
    assert stored(sessions, session_id) == [
        (None, "How long?"),
        ("one", "Let me see."),
        ("count", "3"),
        ("one", "THREE.!"),
    ]


def test_two_routes_that_ask_one_agent_store_each_of_its_steps_once(network, sessions, session_id, scripted_llm):
    # Both routes ask at the same time, so both say the same, and it does not matter who is first.
    scripted_llm.script(*[looks("Let me see.")] * 2, *[says("Three.")] * 2)
    result = network(left=route("one"), right=route("one")).run_sync("How long?", session_id=session_id)
    assert result.outputs == ["Let me see.\n\nThree."] * 2
    contents = [content for _, content in stored(sessions, session_id)]
    assert sorted(contents) == ["3", "3", "How long?", "Let me see.", "Let me see.", "Three.", "Three."]


def test_an_agent_that_does_not_see_the_session_has_its_answer_stored_whole(
    network, sessions, session_id, scripted_llm
):
    scripted_llm.script(says("A plan."), looks("Let me see."), says("Three."))
    result = network(all=route("one", "two")).run_sync("How long?", session_id=session_id)
    assert result.output == "Let me see.\n\nThree."
    assert stored(sessions, session_id) == [(None, "How long?"), ("two", "Let me see.\n\nThree.")]


def test_the_agent_after_one_that_called_tools_gets_its_answer(network, sessions, session_id, scripted_llm):
    scripted_llm.script(looks("Let me see."), says("Three."), says("Done."))
    network(all=route("one", "two")).run_sync("How long?", session_id=session_id)
    assert scripted_llm.requests[-1]["messages"] == [{"role": "user", "content": "Three."}]


def test_an_answer_before_the_calls_is_the_answer_where_nothing_is_said_after_them(
    network, sessions, session_id, scripted_llm
):
    scripted_llm.script(looks("It is three."), says(" "))
    result = network(all=route("one", SHOUT)).run_sync("How long?", session_id=session_id)
    assert result.output == "IT IS THREE.\n\n !"


@pytest.mark.parametrize("kind", ["context", "nowhere"])
def test_it_is_the_same_wherever_the_run_is_kept(kind, network, scripted_llm, tmp_path):
    context = ContextManager("talk", root=tmp_path) if kind == "context" else None
    scripted_llm.script(looks("Let me see."), says("Three."), looks("Let me see."), says("Three."))
    assert network(all=route("one", SHOUT)).run_sync("How long?", context=context).output == "THREE.!"
    assert network(all=route("one")).run_sync("How long?", context=context).output == "Let me see.\n\nThree."
    if context is not None:
        assert [message.content for message in context.messages] == [
            "How long?",
            "THREE.!",
            "How long?",
            "Let me see.\n\nThree.",
        ]


def test_an_answer_cut_off_after_a_step_keeps_what_came_after_it_only(network, sessions, session_id, scripted_llm):
    scripted_llm.script(looks("Let me see."), says(["Thr"], then=hangs))
    reached = asyncio.Event()
    heard = []

    def listen(event):
        heard.append(event)
        if isinstance(event, TextDelta) and any(isinstance(each, ToolCalled) for each in heard):
            reached.set()

    async def cancelled():
        run = network(all=route("one")).run("How long?", session_id=session_id, listener=listen)
        task = asyncio.create_task(run)
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert stored(sessions, session_id) == [(None, "How long?"), ("one", "Let me see."), ("count", "3"), ("one", "Thr")]
    marks = [message.metadata.get("interrupted") for message in sessions.messages(session_id)]
    assert marks == [None, None, None, True]


def test_a_turn_that_fails_after_a_step_stores_the_step_and_nothing_twice(network, sessions, session_id, scripted_llm):
    scripted_llm.script(looks("Let me see."), fails(400))
    with pytest.raises(LLMError):
        network(all=route("one")).run_sync("How long?", session_id=session_id)
    assert stored(sessions, session_id) == [(None, "How long?"), ("one", "Let me see."), ("count", "3")]


def test_a_failed_call_is_told_as_failed_in_later_turns_too(sessions, session_id, scripted_llm):
    llm = {"type": "llm", "llm": "openai:any", "base_url": scripted_llm.url, "system_prompt": SYSTEM}
    llm["tools"] = ["broken"]
    broken = {"type": "tool", "code": "raise ValueError('no luck')"}
    app = CleverAgentsApp(AppConfig.model_validate({"agents": {"one": llm, "broken": broken}}), sessions=sessions)
    scripted_llm.script(calls("broken", {}), strictly(says("It failed.")), strictly(says("Still.")))
    app.run_sync("Try.", session_id=session_id)
    app.run_sync("And now?", session_id=session_id)
    in_its_turn, later = (
        next(message for message in request["messages"] if message["role"] == "tool")
        for request in scripted_llm.requests[1:]
    )
    assert in_its_turn == later
    assert "no luck" in later["content"]


def test_cached_and_reasoning_tokens_come_into_the_ledger(sessions, session_id, asking, scripted_llm):
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 50,
        "total_tokens": 150,
        "prompt_tokens_details": {"cached_tokens": 80},
        "completion_tokens_details": {"reasoning_tokens": 40},
    }
    scripted_llm.script(says("Yes.", usage=usage))
    asking().run_sync("Really?", session_id=session_id)
    (entry,) = sessions.get(session_id).usage_entries
    assert (entry.input_tokens, entry.cached_tokens, entry.output_tokens, entry.reasoning_tokens) == (100, 80, 50, 40)
