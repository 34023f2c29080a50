"""Direction marks in text for a terminal: kept where a real text needs them, shown where they could deceive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents.cli.run.live_text import LiveText
from cleveragents.values.text import terminal_text

HARMLESS = {
    "marks beside right to left letters": "שלום\u200f! C++\u200e ومرحبا\u061c 3",
    "an isolate round a name": "המשתמש \u2068John (admin)\u2069 נכנס",
    "an isolate put in by a library for translations": "Hello, \u2068John\u2069!",
    "embeddings within each other": "אמר \u202bאבג \u202aabc\u202c דהו\u202c.",
    "a right to left isolate": "he said \u2067אבג, שלם!\u2069 and left",
    "on each of two lines": "\u2067אב\u2069\n\u2067גד\u2069",
    "a joiner within a word": "کتب\u200cبی 👩\u200d💻",
}
DECEPTIVE = {
    "an override": ("abc\u202edef\u202c", "abc\\u202edef\\u202c"),
    "one in right to left text": ("שלום \u202dabc\u202c", "שלום \\u202dabc\\u202c"),
    "an embedding left open": ("שלום \u202babc", "שלום \\u202babc"),
    "one closed on the next line": ("א\u202b a\nb\u202c ב", "א\\u202b a\nb\\u202c ב"),
    "one closed after a line separator": ("א\u2067a\u2028b\u2069ב", "א\\u2067a\u2028b\\u2069ב"),
    "an end of what was not opened": ("שלום \u2069\u202c", "שלום \\u2069\\u202c"),
    "an embedding left open within an isolate": ("א\u2066\u202aa\u2069\u202c", "א\u2066\\u202aa\u2069\\u202c"),
    "an end of an embedding within an isolate": ("א\u202ba\u2066\u202cb\u2069", "א\\u202ba\u2066\\u202cb\u2069"),
    "words swapped without a letter that needs it": (
        "\u2067\u2066no\u2069 \u2066yes\u2069\u2069",
        "\\u2067\u2066no\u2069 \u2066yes\u2069\\u2069",
    ),
    "a mark without a letter that needs it": ("pay 10\u200f/20", "pay 10\\u200f/20"),
    "a mark of the next line": ("שלום\n10\u200f/20", "שלום\n10\\u200f/20"),
}

MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
marked = st.text(st.sampled_from(f"ab1א\r\n\u2028{MARKS}"))


@pytest.mark.parametrize("text", HARMLESS.values(), ids=HARMLESS)
def test_text_from_right_to_left_stays_as_it_is(text):
    assert terminal_text(text) == text


@pytest.mark.parametrize(("text", "shown"), DECEPTIVE.values(), ids=DECEPTIVE)
def test_marks_that_could_deceive_are_shown(text, shown):
    assert terminal_text(text) == shown


@given(marked)
def test_what_is_shown_is_harmless(text):
    shown = terminal_text(text)
    assert terminal_text(shown) == shown
    assert not {"\u202d", "\u202e"} & set(shown)


def test_many_marks_take_no_time_to_speak_of():
    text = "\u202a" * 100_000 + "\u2069" * 100_000
    assert len(terminal_text(text)) == 6 * len(text)


@given(st.lists(marked))
def test_text_in_pieces_is_shown_as_the_whole_would_be(pieces):
    live = LiveText()
    assert "".join([*map(live.add, pieces), live.end()]) == terminal_text("".join(pieces))


def test_text_in_pieces_waits_for_nothing_but_marks_and_not_for_ever():
    live = LiveText()
    assert live.add("Hello, ") == "Hello, "
    assert live.add("\u2068John") == ""
    assert live.add("\u2069!\nBye") == "\u2068John\u2069!\nBye"
    live.add("\u200e")
    assert len(live.add("x" * 3000)) > 3000
