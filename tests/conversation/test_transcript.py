"""Which turns an llm is shown, and in what form, whatever was stored."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.conversation.content import CUT_OFF, NO_ANSWER
from cleveragents.conversation.transcript import Step, ToolCall, Turn, turns_of
from cleveragents.conversation.window import Window


@dataclass
class Stored:
    role: str
    content: Any
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


def user(text):
    return Stored("user", text)


def says(text, **metadata):
    return Stored("assistant", text, metadata=metadata)


def calls(*ids, text=None):
    return Stored("assistant", text, [{"id": id_, "name": "count", "arguments": {"n": id_}} for id_ in ids])


def result(id_, text="3"):
    return Stored("tool", text, tool_call_id=id_)


def call(id_, text="3"):
    return ToolCall(id_, "count", {"n": id_}, text)


def steps(*messages):
    (turn,) = turns_of([user("Go."), *messages])
    return turn.steps


def test_questions_and_answers_are_turns():
    assert turns_of([user("A?"), says("A."), user("B?"), says("B.")]) == [
        Turn("A?", (Step("A."),)),
        Turn("B?", (Step("B."),)),
    ]


def test_what_comes_before_the_first_question_and_system_messages_are_left_out():
    before = [Stored("system", "Be nice."), says("Hello!"), result("c0")]
    assert turns_of([*before, user("A?"), Stored("system", "Be rude."), says("A.")]) == [Turn("A?", (Step("A."),))]


def test_c46_results_stand_with_their_calls_in_the_order_of_the_calls():
    for order in (("c1", "c2", "c3"), ("c3", "c1", "c2")):
        made = steps(calls("c1", "c2", "c3", text="Looking."), *map(result, order), says("Done."))
        assert made == (Step("Looking.", (call("c1"), call("c2"), call("c3"))), Step("Done."))


@pytest.mark.parametrize("missing", ["c1", "c2", "c3"])
def test_c46_calls_without_all_their_results_are_left_out_whole(missing):
    results = [result(id_) for id_ in ("c1", "c2", "c3") if id_ != missing]
    assert steps(calls("c1", "c2", "c3", text="Looking."), *results, says("Done.")) == (Step("Looking.\n\nDone."),)
    assert steps(calls("c1", "c2", "c3"), *results) == (Step(NO_ANSWER),)


def test_c46_results_without_a_call_are_left_out():
    assert steps(result("c9"), says("Done."), result("c1"), calls("c1")) == (Step("Done."),)
    # The call of an earlier turn gets no result in a later one.
    early, late = turns_of([user("A?"), calls("c1"), user("B?"), result("c1"), says("B.")])
    assert early.steps == (Step(NO_ANSWER),)
    assert late.steps == (Step("B."),)


def test_a_second_result_of_a_call_and_ids_used_again_do_no_harm():
    again = steps(calls("c1"), result("c1", "1"), result("c1", "2"), calls("c1"), result("c1", "4"), says("Done."))
    assert again == (Step("", (call("c1", "1"),)), Step("", (call("c1", "4"),)), Step("Done."))
    assert steps(calls("c1", "c1"), result("c1"), result("c1"), says("Done.")) == (Step("Done."),)


def test_calls_in_the_nested_form_of_other_programs_are_understood():
    function = {"name": "count", "arguments": '{"n": "c1"}'}
    nested = Stored("assistant", None, [{"id": "c1", "type": "function", "function": function}])
    assert steps(nested, result("c1"), says("Done.")) == (Step("", (call("c1"),)), Step("Done."))
    nameless = Stored("assistant", None, [{"id": "c1"}])
    assert steps(nameless, result("c1"), says("Done.")) == (Step("Done."),)


def test_a_turn_that_was_cut_off_is_marked_and_never_open():
    assert steps() == (Step(NO_ANSWER),)
    assert steps(says("It is Par", interrupted=True)) == (Step(f"It is Par {CUT_OFF}"),)
    assert steps(calls("c1"), result("c1")) == (Step("", (call("c1"),)), Step(NO_ANSWER))


def test_c103_a_question_asked_again_is_open_once():
    failed = [user("Z?"), says("Z."), user("A?"), user("A?")]
    assert [turn.question for turn in turns_of(failed, "A?")] == ["Z?"]
    assert [turn.question for turn in turns_of(failed, "B?")] == ["Z?", "A?", "A?"]
    # What its tools have done already stays in sight.
    worked = [user("A?"), calls("c1"), result("c1")]
    assert [turn.question for turn in turns_of(worked, "A?")] == ["A?"]


def test_c49_the_newest_are_kept_in_their_order():
    turns = turns_of([message for n in range(1, 11) for message in (user(f"m{n}"), says(f"a{n}"))])
    for window in (Window(turns=3), Window(messages=6), Window(messages=7)):
        assert [turn.question for turn in window.newest(turns)] == ["m8", "m9", "m10"]
    assert Window(turns=0).newest(turns) == []
    assert Window().newest(turns) == turns


def test_c46_a_turn_with_calls_is_kept_with_all_its_results_or_left_out_whole():
    with_calls = [user("B?"), calls("c1", "c2", "c3"), *map(result, ("c1", "c2", "c3")), says("B.")]
    turns = turns_of([user("A?"), says("A."), *with_calls])
    kept = [[turn.question for turn in Window(messages=size).newest(turns)] for size in range(10)]
    assert kept == [*[[]] * 6, ["B?"], ["B?"], ["A?", "B?"], ["A?", "B?"]]


ids = st.sampled_from(["c1", "c2", "c3"])
texts = st.text(max_size=3)
messages = st.one_of(
    st.builds(user, st.text(min_size=1, max_size=3)),
    st.builds(says, texts),
    st.builds(lambda text: says(text, interrupted=True), texts),
    st.builds(lambda given, text: calls(*given, text=text), st.lists(ids, min_size=1, max_size=4), st.none() | texts),
    st.builds(result, ids, texts),
    st.builds(Stored, st.just("system"), texts),
)


@given(st.lists(messages, max_size=30), st.sampled_from(["turns", "messages", "tokens"]))
def test_c46_in_any_history_and_any_window_pairs_hold_and_the_newest_are_kept_in_order(history, kind):
    turns = turns_of(history)
    assert [turn.question for turn in turns] == [message.content for message in history if message.role == "user"]
    stored_results = sum(message.role == "tool" for message in history)
    assert sum(len(step.calls) for turn in turns for step in turn.steps) <= stored_results
    for turn in turns:
        assert turn.steps[-1].text
        assert not turn.steps[-1].calls
        for step in turn.steps[:-1]:
            assert step.calls
            assert len({each.id for each in step.calls}) == len(step.calls)
    sizes = [1 if kind == "turns" else getattr(turn, kind) for turn in turns]
    for limit in range(sum(sizes) + 2):
        kept = Window(**{kind: limit}).newest(turns)
        assert kept == turns[len(turns) - len(kept) :]
        assert sum(sizes[len(turns) - len(kept) :]) <= limit
        assert len(kept) == len(turns) or sum(sizes[len(turns) - len(kept) - 1 :]) > limit
