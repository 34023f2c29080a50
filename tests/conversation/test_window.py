"""What of long texts and large turns an llm is sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.conversation.transcript import Step, ToolCall, Turn, estimated_tokens
from cleveragents.conversation.window import SHORT_TEXT, Room, Window, as_sent, shortened

SMALL = Turn("A?", (Step("A."),))


def with_calls(*results):
    calls = tuple(ToolCall(f"c{number}", "read", {}, result) for number, result in enumerate(results))
    return Turn("B?", (Step("", calls), Step("B.")))


def test_a_text_that_fits_is_sent_as_it_is():
    assert shortened("word", 1) == "word"
    assert shortened("", 0) == ""


def test_a_longer_one_keeps_its_beginning_and_its_end_and_says_how_much_is_missing():
    text = "a" * 1000 + "b" * 1_000_000 + "c" * 1000
    assert shortened(text, 500) == (
        f"{'a' * 1000}\n[1,000,000 characters are left out here, since there are too many]\n{'c' * 1000}"
    )


@given(st.text(min_size=1, max_size=60), st.integers(0, 20))
def test_no_character_is_cut_in_two_and_all_that_is_missing_is_counted(text, tokens):
    short = shortened(text, tokens)
    assert estimated_tokens(short) <= tokens + 20
    if short != text:
        beginning, end = short.split("\n[", 1)[0], short.rsplit("many]\n", 1)[1]
        assert text.startswith(beginning)
        assert text.endswith(end)
        assert f"{len(text) - len(beginning) - len(end):,} characters" in short


def test_however_many_results_a_turn_has_each_is_sent_something_of():
    turn = as_sent(with_calls(*["x" * 400_000] * 30, "the last"), 100_000)
    sent = [call.result for call in turn.steps[0].calls]
    assert sum(map(estimated_tokens, sent)) < 110_000
    assert all(result.startswith("xxx") and "left out" in result for result in sent[:-1])
    assert sent[-1] == "the last"


def test_what_is_sent_at_once_is_what_is_sent_later():
    turn = with_calls("x" * 9000, "y" * 9000, "z")
    room = Room(4000)
    assert as_sent(turn, 4000) == Turn(room.taken(turn.question), tuple(map(room.step, turn.steps)))


def test_a_large_turn_is_shortened_and_what_was_before_it_stays():
    large = with_calls("x" * 100_000)
    short, after = Window(tokens=2000).newest([SMALL, large, SMALL])[1:]
    assert after == SMALL
    assert [step.text for step in short.steps] == ["", "B."]
    assert estimated_tokens(short.steps[0].calls[0].result) < SHORT_TEXT + 20


def test_a_turn_of_too_many_calls_is_sent_without_them_and_says_so():
    many = with_calls(*["x" * 3000] * 40)
    assert Window(tokens=2000).newest([SMALL, many, SMALL]) == [
        SMALL,
        Turn("B?", (Step("[40 calls of tools are left out here]\n\nB."),)),
        SMALL,
    ]


@pytest.mark.parametrize("window", [Window(turns=2), Window(messages=4)])
def test_only_a_lack_of_tokens_shortens_a_turn(window):
    large = Turn("B?", (Step("x" * 100_000),))
    assert window.newest([SMALL, large, SMALL]) == [large, SMALL]
