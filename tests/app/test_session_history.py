"""What an llm is sent of a session, and how the parts of a turn are stored."""

import pytest

from cleveragents import AppConfig, CleverAgentsApp, HistoryLeftOut, MessageDraft
from cleveragents.conversation.content import CUT_OFF, NO_ANSWER
from support.scripted_llm import calls, fails, says
from support.strict import SYSTEM, faults, strictly
from support.turns import COUNT, said, sent


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
        ("assistant", f"half of a3 {CUT_OFF}"),
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


def test_what_is_left_out_of_the_history_is_told_and_nothing_where_all_of_it_is_sent(
    sessions, session_id, asking, scripted_llm
):
    for number in range(200):
        sessions.append_all(session_id, [MessageDraft("user", f"q{number}"), MessageDraft("assistant", "a")])
    left_out = []

    def listen(event):
        if isinstance(event, HistoryLeftOut):
            left_out.append(event.messages)

    scripted_llm.script(says("Bien."), says("Bien."))
    asking({"turns": 3}).run_sync("go on", session_id=session_id, listener=listen)
    assert left_out == [394]
    asking().run_sync("go on", session_id=session_id, listener=listen)
    assert left_out == [394]


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
