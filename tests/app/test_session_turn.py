"""One turn of an application on a session: what the llm is sent, and what is stored, whatever becomes of the run."""

import asyncio
import threading

import pytest

from cleveragents import AppConfig, CleverAgentsApp, ContextManager, MessageDraft, SessionService, open_sessions
from cleveragents.agents.events import TextDelta, ToolCalled
from cleveragents.conversation.content import INTERRUPTED, NO_ANSWER
from cleveragents.errors import (
    InvalidSettingError,
    LLMError,
    SessionBusyError,
    SessionNotFoundError,
    SessionStorageError,
)
from support.scripted_llm import calls, cuts, fails, hangs, says
from support.strict import SYSTEM, faults, strictly

COUNT = {"type": "tool", "code": "context['runs'] = context.get('runs', 0) + 1; result = len(message)"}


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


def said(sessions, session_id):
    return [(str(message.role), message.content) for message in sessions.messages(session_id)]


def sent(scripted_llm, request=-1):
    """The last request, as roles and contents; a call is shown by its id."""
    return [
        (message["role"], message["content"] or [call["id"] for call in message["tool_calls"]])
        for message in scripted_llm.requests[request]["messages"]
    ]


# --- what is sent ------------------------------------------------------------------------------------------


def test_the_history_goes_to_the_llm_in_its_own_roles(sessions, session_id, asking, scripted_llm):
    scripted_llm.script(calls("count", {"message": "abc"}), says("Three."), says("I said three."))
    app = asking()
    app.run_sync("How long is abc?", session_id=session_id)
    app.run_sync("What did you say?", session_id=session_id)
    assert sent(scripted_llm) == [
        ("system", SYSTEM),
        ("user", "How long is abc?"),
        ("assistant", ["call_count_0"]),
        ("tool", "3"),
        ("assistant", "Three."),
        ("user", "What did you say?"),
    ]
    assert not any(faults(request["messages"]) for request in scripted_llm.requests)


def test_the_parts_of_a_turn_are_stored_as_they_happen_with_their_agents_names(
    sessions, session_id, asking, scripted_llm
):
    seen = []

    def look(then):
        def entry(exchange):
            seen.append(said(sessions, session_id))
            then(exchange)

        return entry

    two = says("Let me see.", calls=[("count", {"message": "ab"}), ("count9", {})])
    scripted_llm.script(look(two), look(says("Two.")))
    result = asking().run_sync("How long?", session_id=session_id)
    assert result.output == "Let me see.\n\nTwo."
    question, call, first, second, answer = sessions.messages(session_id)
    assert seen[0] == [("user", "How long?")]
    assert seen[1] == [*seen[0], ("assistant", "Let me see."), ("tool", "2"), ("tool", second.content)]
    assert call.tool_calls == [
        {"id": "call_count_0", "name": "count", "arguments": {"message": "ab"}},
        {"id": "call_count9_1", "name": "count9", "arguments": {}},
    ]
    assert (question.agent, call.agent, first.agent, answer.agent) == (None, "assistant", "count", "assistant")
    assert (first.tool_call_id, second.tool_call_id) == ("call_count_0", "call_count9_1")
    assert (first.metadata, second.metadata) == ({}, {"cleveragents": {"failed": True}})
    # What was said before the call is there once.
    assert answer.content == "Two."


def filled(sessions, session_id):
    """A history of everything that can go wrong: several calls in a turn, orphans, turns that were cut off."""

    def call(*ids, text=None):
        made = [{"id": id_, "name": "count", "arguments": {"message": id_}} for id_ in ids]
        return MessageDraft("assistant", text, tool_calls=made, agent="assistant")

    def result(id_):
        return MessageDraft("tool", id_, tool_call_id=id_)

    def question(text):
        return MessageDraft("user", text)

    def answer(text, **metadata):
        return MessageDraft("assistant", text, metadata=metadata)

    sessions.append_all(
        session_id,
        [
            result("orphan"),
            answer("Welcome!"),
            question("q0"),
            answer("a0"),
            question("q1"),
            call("c1", "c2", "c3", text="Looking."),
            *map(result, ("c3", "c1", "c2")),
            call("c4"),
            result("c4"),
            answer("a1"),
            question("q2"),
            call("c5", "c6"),
            result("c5"),
            question("q3"),
            answer("half of a3", interrupted=True),
            result("c6"),
            question("q4"),
            question("q5"),
            call("c7"),
            result("c7"),
            question("q6"),
            MessageDraft("system", "Answer in German."),
            answer("a6"),
        ],
    )


@pytest.mark.parametrize("kind", ["turns", "messages", "tokens"])
def test_c46_c50_a_strict_server_accepts_windows_of_every_size(kind, sessions, session_id, asking, scripted_llm):
    filled(sessions, session_id)
    document = sessions.export(session_id)
    whole = [f"q{number}" for number in range(7)]
    shown = set()
    sizes = {"turns": range(9), "messages": range(26), "tokens": range(0, 240, 12)}[kind]
    for size in sizes:
        copy = sessions.import_(document).session_id
        scripted_llm.script(strictly(says("Bien.")))
        asking({kind: size}).run_sync("go on", session_id=copy)
        assert faults(scripted_llm.requests[-1]["messages"]) == []
        questions = [content for role, content in sent(scripted_llm) if role == "user"]
        assert questions == [*whole[len(whole) - len(questions) + 1 :], "go on"]
        shown.add(len(questions))
    assert shown == set(range(1, 9))


def test_the_whole_history_as_it_is_sent(sessions, session_id, asking, scripted_llm):
    filled(sessions, session_id)
    scripted_llm.script(strictly(says("Bien.")))
    asking().run_sync("go on", session_id=session_id)
    assert sent(scripted_llm)[3:] == [
        ("user", "q1"),
        ("assistant", "Looking."),
        ("tool", "c1"),
        ("tool", "c2"),
        ("tool", "c3"),
        ("assistant", ["c4"]),
        ("tool", "c4"),
        ("assistant", "a1"),
        ("user", "q2"),
        ("assistant", NO_ANSWER),
        ("user", "q3"),
        ("assistant", f"half of a3 {INTERRUPTED}"),
        ("user", "q4"),
        ("assistant", NO_ANSWER),
        ("user", "q5"),
        ("assistant", ["c7"]),
        ("tool", "c7"),
        ("assistant", NO_ANSWER),
        ("user", "q6"),
        ("assistant", "a6"),
        ("user", "go on"),
    ]


def test_without_a_window_the_llm_gets_what_it_can_hold(sessions, session_id, asking, scripted_llm):
    # Nothing is known of the llm, so it is taken to hold 16,000 tokens; each turn is some 1,000.
    for number in range(40):
        sessions.append_all(
            session_id, [MessageDraft("user", f"{number} " * 800), MessageDraft("assistant", "word " * 400)]
        )
    scripted_llm.script(says("Bien."), says("Bien."))
    app = asking()
    app.run_sync("go on", session_id=session_id)
    turns = [content for role, content in sent(scripted_llm) if role == "user"]
    assert 8 < len(turns) < 14
    assert turns[-2].startswith("39 ")
    # A longer answer leaves less room for what was before it.
    asking(max_tokens=9000).run_sync("go on", session_id=session_id)
    assert 2 < len([role for role, _ in sent(scripted_llm) if role == "user"]) < len(turns) - 2


def test_a_turn_longer_than_a_page_is_found_whole(sessions, session_id, asking, scripted_llm):
    sessions.append(session_id, "user", "long ago")
    sessions.append_all(session_id, [MessageDraft("assistant", f"part {number}") for number in range(700)])
    scripted_llm.script(strictly(says("Bien.")))
    asking({"turns": 1}).run_sync("go on", session_id=session_id)
    assert [role for role, _ in sent(scripted_llm)] == ["system", "user", "assistant", "user"]


def test_c47_the_system_prompt_is_the_current_one_once_and_does_not_count(sessions, session_id, asking, scripted_llm):
    scripted_llm.script(*(says(f"a{number}") for number in range(30)), says("Bien."), says("Gut."), says("Gut."))
    french = asking({"messages": 5})
    for number in range(30):
        french.run_sync(f"q{number}", session_id=session_id)
    french.run_sync("q30", session_id=session_id)
    asking({"messages": 5}, system_prompt="Answer in German.").run_sync("q31", session_id=session_id)
    copy = sessions.import_(sessions.export(session_id)).session_id
    asking({"messages": 5}, system_prompt="Answer in German.").run_sync("q32", session_id=copy)
    for request, prompt in zip((-3, -2, -1), (SYSTEM, "Answer in German.", "Answer in German."), strict=True):
        messages = scripted_llm.requests[request]["messages"]
        assert faults(messages, prompt) == []
        assert [message["role"] for message in messages] == ["system", *("user", "assistant") * 2, "user"]


def test_c49_the_newest_messages_in_order(sessions, session_id):
    sessions.append_all(session_id, [MessageDraft("user", f"m{number}") for number in range(1, 11)])
    assert [message.content for message in sessions.last_messages(session_id, 3)] == ["m8", "m9", "m10"]


def test_only_the_first_llm_agent_gets_the_history(sessions, session_id, scripted_llm):
    llm = {"type": "llm", "llm": "openai:any", "base_url": scripted_llm.url}
    config = {
        "agents": {
            "clean": {"type": "tool", "code": "result = message.strip()"},
            "planner": llm,
            "writer": {**llm, "tools": ["clean"]},
        },
        "routes": {"all": {"from": "input", "through": ["clean", "planner", "writer"], "to": "output"}},
    }
    app = CleverAgentsApp(AppConfig.model_validate(config), sessions=sessions)
    scripted_llm.script(
        says("plan 1"), calls("clean", {"message": "x"}), says("text 1"), says("plan 2"), says("text 2")
    )
    app.run_sync(" one ", session_id=session_id)
    app.run_sync("two", session_id=session_id)
    assert sent(scripted_llm, -2) == [("user", " one "), ("assistant", "text 1"), ("user", "two")]
    assert sent(scripted_llm, -1) == [("user", "plan 2")]
    # The calls of an agent that does not see the history are no part of it.
    assert said(sessions, session_id) == [
        ("user", " one "),
        ("assistant", "text 1"),
        ("user", "two"),
        ("assistant", "text 2"),
    ]
    assert [message.agent for message in sessions.messages(session_id)] == [None, "writer", None, "writer"]


def test_agents_asked_side_by_side_all_get_the_history_and_who_joins_them_does_not(sessions, session_id, scripted_llm):
    llm = {"type": "llm", "llm": "openai:any", "base_url": scripted_llm.url}
    config = {
        "agents": {"left": llm, "right": llm, "judge": llm},
        "routes": {
            "all": {"from": "input", "through": [{"parallel": {"agents": ["left", "right"]}}, "judge"], "to": "output"},
        },
    }
    sessions.append_all(session_id, [MessageDraft("user", "q"), MessageDraft("assistant", "a")])
    scripted_llm.script(says("L"), says("R"), says("both"))
    CleverAgentsApp(AppConfig.model_validate(config), sessions=sessions).run_sync("go", session_id=session_id)
    history = [("user", "q"), ("assistant", "a"), ("user", "go")]
    assert [sent(scripted_llm, number) for number in range(2)] == [history, history]
    assert [role for role, _ in sent(scripted_llm, 2)] == ["user"]


def test_an_agent_that_stands_in_for_another_gets_the_history_too(sessions, session_id, scripted_llm):
    llm = {"type": "llm", "llm": "openai:any", "base_url": scripted_llm.url}
    config = {"agents": {"first": {**llm, "on_error": "second"}, "second": llm}}
    sessions.append_all(session_id, [MessageDraft("user", "q"), MessageDraft("assistant", "a")])
    scripted_llm.script(fails(400), says("ok"))
    CleverAgentsApp(AppConfig.model_validate(config), sessions=sessions).run_sync("go", session_id=session_id)
    assert sent(scripted_llm) == [("user", "q"), ("assistant", "a"), ("user", "go")]
    assert sessions.last_messages(session_id, 1)[0].agent == "second"


def test_the_turn_under_way_is_no_part_of_the_history(sessions, session_id, scripted_llm):
    llm = {"type": "llm", "llm": "openai:any", "base_url": scripted_llm.url, "system_prompt": SYSTEM}
    config = {"agents": {"first": {**llm, "on_error": "second", "tools": ["count"]}, "second": llm, "count": COUNT}}
    scripted_llm.script(calls("count", {}), fails(400), strictly(says("ok")))
    CleverAgentsApp(AppConfig.model_validate(config), sessions=sessions).run_sync("go", session_id=session_id)
    assert sent(scripted_llm) == [("system", SYSTEM), ("user", "go")]


# --- interruption ------------------------------------------------------------------------------------------


def cancelled_at(app, session_id, prompt, kind, number=1):
    """Run, and cancel at the given event."""

    async def cancelled():
        reached = asyncio.Event()
        left = number

        def listen(event):
            nonlocal left
            left -= isinstance(event, kind)
            if not left:
                reached.set()

        task = asyncio.create_task(app.run(prompt, session_id=session_id, listener=listen))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())


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
    assert (f"One, two {INTERRUPTED}") in [content for _, content in sent(scripted_llm)]


def test_c50_interrupted_while_a_tool_runs_the_next_requests_are_valid(sessions, session_id, asking, scripted_llm):
    app = asking()
    scripted_llm.script(says(calls=[("count", {"message": "ab"}), ("count", {"message": "abc"})]))
    cancelled_at(app, session_id, "How long?", ToolCalled, 2)
    stored = said(sessions, session_id)
    assert [role for role, _ in stored] == ["user", "assistant", "tool", "tool"]
    assert [content for _, content in stored[2:]] == ["2", INTERRUPTED]
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
    assert messages[1].tool_calls[0]["arguments"] == {}
    assert messages[4].content == "[nothing]"
