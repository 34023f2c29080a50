"""One turn of an application on a session: what is stored of it, whatever becomes of the run."""

import asyncio
import threading

import pytest

from cleveragents import AppConfig, CleverAgentsApp, ContextManager, SessionService, open_sessions
from cleveragents.agents.events import TextDelta, ToolCalled
from cleveragents.conversation.content import CUT_OFF, NO_ANSWER
from cleveragents.errors import (
    InvalidSettingError,
    LLMError,
    SessionBusyError,
    SessionNotFoundError,
    SessionStorageError,
)
from support.scripted_llm import calls, cuts, fails, hangs, says
from support.strict import SYSTEM, strictly
from support.turns import cancelled_at, said, sent

# --- interruption ------------------------------------------------------------------------------------------


def test_c50_an_answer_that_is_cut_off_is_kept_and_marked(sessions, session_id, asking, scripted_llm):
    scripted_llm.script(says(["One, ", "two"], then=hangs), says(["Th", "ree"], then=cuts), strictly(says("Four.")))
    app = asking()
    cancelled_at(app, session_id, "Count.", TextDelta, 2)
    with pytest.raises(LLMError):
        app.run_sync("Go on.", session_id=session_id)
    app.run_sync("And on.", session_id=session_id)
    stored = [("user", "Count."), ("assistant", "One, two"), ("user", "Go on."), ("assistant", "Three")]
    assert said(sessions, session_id) == [*stored, ("user", "And on."), ("assistant", "Four.")]
    marks = [message.metadata.get("interrupted") for message in sessions.messages(session_id)]
    assert marks == [None, True, None, True, None, None]
    assert sessions.messages(session_id)[1].agent == "assistant"
    assert (f"One, two {CUT_OFF}") in [content for _, content in sent(scripted_llm)]


def test_c50_interrupted_while_a_tool_runs_the_next_requests_are_valid(sessions, session_id, asking, scripted_llm):
    app = asking()
    scripted_llm.script(says(calls=[("count", {"message": "ab"}), ("count", {"message": "abc"})]))
    cancelled_at(app, session_id, "How long?", ToolCalled, 2)
    stored = said(sessions, session_id)
    assert [role for role, _ in stored] == ["user", "assistant", "tool", "tool"]
    assert [content for _, content in stored[2:]] == ["2", CUT_OFF]
    scripted_llm.script(strictly(says("Bien.")), strictly(says("Encore.")))
    app.run_sync("go on", session_id=session_id)
    app.run_sync("go on", session_id=session_id)
    assert [content for role, content in sent(scripted_llm) if role == "user"] == ["How long?", "go on", "go on"]


def test_c50_a_tool_that_is_stopped_at_its_limit_has_a_result(sessions, session_id, scripted_llm):
    llm = {"type": "llm", "llm": "openai:any", "base_url": scripted_llm.url, "system_prompt": SYSTEM, "tools": ["slow"]}
    slow = {"type": "tool", "code": "while True: pass", "time_limit": 0.2}
    app = CleverAgentsApp(AppConfig.model_validate({"agents": {"a": llm, "slow": slow}}), sessions=sessions)
    scripted_llm.script(calls("slow", {}), strictly(says("Trop.")), strictly(says("Bien.")))
    app.run_sync("Try.", session_id=session_id)
    app.run_sync("go on", session_id=session_id)
    assert [message.metadata for message in sessions.messages(session_id)][2] == {"cleveragents": {"failed": True}}


def test_c103_a_question_whose_run_failed_and_that_is_asked_again_is_open_once(
    sessions, session_id, asking, scripted_llm
):
    app = asking()
    scripted_llm.script(
        fails(500), fails(500), says("Paris."), fails(400), strictly(says("Rome.")), strictly(says("?"))
    )
    app.run_sync("Capital of France?", session_id=session_id)
    assert said(sessions, session_id) == [("user", "Capital of France?"), ("assistant", "Paris.")]
    with pytest.raises(LLMError):
        app.run_sync("Capital of Italy?", session_id=session_id)
    app.run_sync("Capital of Italy?", session_id=session_id)
    asked = [content for role, content in sent(scripted_llm) if role == "user"]
    assert asked == ["Capital of France?", "Capital of Italy?"]
    # Another question: the one without an answer is shown as such.
    app.run_sync("Another?", session_id=session_id)
    assert [content for role, content in sent(scripted_llm) if role == "assistant"] == ["Paris.", NO_ANSWER, "Rome."]
    assert [content for role, content in said(sessions, session_id) if role == "user"][1:] == [
        "Capital of Italy?",
        "Capital of Italy?",
        "Another?",
    ]


class Slow(SessionService):
    """Sessions whose appends, once ``slow``, wait for ``go``, as for a busy disk; then they work, or ``fail``."""

    def __init__(self, sessions):
        super().__init__(sessions._store)
        self.began, self.go = threading.Event(), threading.Event()
        self.slow = self.fail = False

    def append_all(self, *args, **kwargs):
        if self.slow:
            self.began.set()
            self.go.wait(10)
        if self.fail:
            raise SessionStorageError("gone")
        return super().append_all(*args, **kwargs)


def test_an_answer_is_not_lost_between_the_llm_and_the_disk(sessions, session_id, asking, scripted_llm):
    slow = Slow(sessions)
    app = CleverAgentsApp(asking().config, sessions=slow)

    def answer(exchange):
        slow.slow = True
        says("Paris.")(exchange)

    async def cancelled():
        task = asyncio.create_task(app.run("Capital?", session_id=session_id))
        await asyncio.to_thread(slow.began.wait)
        task.cancel()
        asyncio.get_running_loop().call_later(0.05, slow.go.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert slow.go.is_set()

    scripted_llm.script(answer)
    asyncio.run(cancelled())
    assert said(sessions, session_id) == [("user", "Capital?"), ("assistant", "Paris.")]


def test_a_cancelled_run_does_not_wait_for_a_store_that_hangs(sessions, session_id, asking, scripted_llm):
    slow = Slow(sessions)
    app = CleverAgentsApp(asking().config, sessions=slow)

    def answer(exchange):
        slow.slow = True
        says("Paris.")(exchange)

    async def cancelled():
        task = asyncio.create_task(app.run("Capital?", session_id=session_id))
        await asyncio.to_thread(slow.began.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    scripted_llm.script(answer)
    asyncio.run(cancelled())
    # The run is over, and its answer is still waiting.
    assert said(sessions, session_id) == [("user", "Capital?")]
    slow.fail = True
    slow.go.set()


def test_a_store_that_fails_in_the_middle_of_a_turn_is_what_is_reported(sessions, session_id, asking, scripted_llm):
    slow = Slow(sessions)
    app = CleverAgentsApp(asking().config, sessions=slow)

    def answer(exchange):
        slow.fail = True
        calls("count", {})(exchange)

    scripted_llm.script(answer)
    with pytest.raises(SessionStorageError, match="gone"):
        app.run_sync("How long?", session_id=session_id)
    # The llm is not asked on when what was done is not stored.
    assert len(scripted_llm.requests) == 1
    assert said(sessions, session_id) == [("user", "How long?")]


# --- one turn at a time ------------------------------------------------------------------------------------


def test_c11_a_second_run_waits_and_is_refused_when_it_takes_too_long(sessions, session_id, asking, scripted_llm):
    app = asking()
    with sessions.turn(session_id), pytest.raises(SessionBusyError, match=session_id):
        app.run_sync("go", session_id=session_id, wait=0.01)
    assert said(sessions, session_id) == []
    scripted_llm.script(says("ok"))
    app.run_sync("go", session_id=session_id, wait=0.01)
    assert len(said(sessions, session_id)) == 2


def test_c11_turns_with_calls_that_collide_stay_whole(sessions, session_id, asking, scripted_llm):
    scripted_llm.script(*[calls("count", {"message": "abc"}), says("Three.")] * 6)
    app = asking()

    async def collide():
        await asyncio.gather(*(app.run(f"q{number}", session_id=session_id) for number in range(6)))

    asyncio.run(collide())
    roles = [role for role, _ in said(sessions, session_id)]
    assert roles == ["user", "assistant", "tool", "assistant"] * 6


def test_a_run_cancelled_while_it_waits_leaves_the_turn_to_others(sessions, session_id, asking, scripted_llm):
    app = asking()

    async def cancelled():
        task = asyncio.create_task(app.run("first", session_id=session_id))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with sessions.turn(session_id):
        asyncio.run(cancelled())
    assert said(sessions, session_id) == []
    scripted_llm.script(says("ok"))
    app.run_sync("second", session_id=session_id)
    assert said(sessions, session_id) == [("user", "second"), ("assistant", "ok")]


# --- usage and cost ----------------------------------------------------------------------------------------


def test_c53_an_unknown_cost_is_null_and_makes_the_total_incomplete(sessions, session_id, asking, scripted_llm):
    scripted_llm.script(says("1"), says("2"), says("3"))
    for llm in ("openai:acme-9", "openai:acme-9", "openai:gpt-5-mini"):
        asking(llm=llm).run_sync("go", session_id=session_id)
    entries = sessions.get(session_id).usage_entries
    assert [entry.llm for entry in entries] == ["openai:acme-9", "openai:acme-9", "openai:gpt-5-mini"]
    assert [entry.estimated_cost is None for entry in entries] == [True, True, False]
    total = sessions.summary(session_id).token_usage
    assert (total.input_tokens, total.output_tokens, total.cost_complete) == (30, 15, False)
    assert total.estimated_cost == entries[2].estimated_cost > 0
    assert len(said(sessions, session_id)) == 6


def test_one_entry_for_a_turn_and_llm_with_all_its_requests(sessions, session_id, asking, scripted_llm):
    scripted_llm.script(calls("count", {}), calls("count", {}), says("done"))
    asking(llm="openai:gpt-5-mini").run_sync("go", session_id=session_id)
    (entry,) = sessions.get(session_id).usage_entries
    assert (entry.input_tokens, entry.output_tokens) == (30, 15)


def test_what_a_failed_turn_used_is_entered_too(sessions, session_id, asking, scripted_llm):
    scripted_llm.script(calls("count", {}), fails(400))
    with pytest.raises(LLMError):
        asking().run_sync("go", session_id=session_id)
    (entry,) = sessions.get(session_id).usage_entries
    assert (entry.input_tokens, entry.output_tokens) == (10, 5)


def test_c55_totals_go_on_after_a_restart(database_url, sessions, session_id, asking, scripted_llm):
    scripted_llm.script(*(says("ok") for _ in range(4)))
    for _ in range(3):
        asking().run_sync("go", session_id=session_id)
    with open_sessions(database_url) as reopened:
        CleverAgentsApp(asking().config, sessions=reopened).run_sync("go", session_id=session_id)
        assert reopened.summary(session_id).token_usage.input_tokens == 40


# --- the rest ----------------------------------------------------------------------------------------------


def test_what_agents_keep_in_the_global_context_is_there_in_the_next_turn(sessions, session_id, asking, scripted_llm):
    scripted_llm.script(*[calls("count", {}), says("ok")] * 2)
    asking().run_sync("one", session_id=session_id)
    assert asking().run_sync("two", session_id=session_id).context["runs"] == 2
    assert sessions.summary(session_id).metadata == {"cleveragents": {"global_context": {"runs": 2}}}


@pytest.mark.parametrize("moment", ["the answer", "a call"])
def test_c82_a_session_deleted_during_a_run_is_said_and_stays_deleted(
    moment, sessions, session_id, asking, scripted_llm
):
    def delete(exchange):
        sessions.delete(session_id)
        (says("Paris.") if moment == "the answer" else calls("count", {}))(exchange)

    scripted_llm.script(delete)
    with pytest.raises(SessionNotFoundError, match=session_id):
        asking().run_sync("Capital?", session_id=session_id)
    assert sessions.list() == []
    with pytest.raises(SessionNotFoundError):
        sessions.messages(session_id)


def test_a_run_needs_sessions_and_one_conversation(sessions, session_id, asking, tmp_path):
    app = asking()
    with pytest.raises(InvalidSettingError, match="not on both"):
        app.run_sync("go", session_id=session_id, context=ContextManager("talk", root=tmp_path))
    with pytest.raises(InvalidSettingError, match="sessions"):
        CleverAgentsApp(app.config).run_sync("go", session_id=session_id)
    assert said(sessions, session_id) == []


def test_tools_that_give_nothing_and_answers_of_several_agents_are_stored(sessions, session_id, scripted_llm):
    llm = {"type": "llm", "llm": "openai:any", "base_url": scripted_llm.url, "tools": ["quiet"]}
    config = {
        "agents": {
            "a": llm,
            "quiet": {"type": "tool", "code": "result = ' '"},
            "b": {"type": "tool", "code": "result = {'b': 1}"},
        },
        "routes": {
            "a": {"from": "input", "through": ["a"], "to": "output"},
            "b": {"from": "input", "through": ["b"], "to": "output"},
        },
    }
    scripted_llm.script(calls("quiet", "{not json"), calls("quiet", {}), says("A"))
    CleverAgentsApp(AppConfig.model_validate(config), sessions=sessions).run_sync("go", session_id=session_id)
    messages = sessions.messages(session_id)
    assert sorted((message.agent, message.content) for message in messages[-2:]) == [("a", "A"), ("b", '{"b":1}')]
    assert messages[1].tool_calls is not None
    assert messages[1].tool_calls[0]["arguments"] == "{not json"
    assert messages[4].content == "[nothing]"
