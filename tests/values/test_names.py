"""Names and ids: one stored form each, or refused with a reason."""

import re
import threading
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cleveragents.errors import InvalidIdError, InvalidNameError, SessionValidationError
from cleveragents.values.ids import new_ulid, parse_ulid
from cleveragents.values.names import actor_name, context_name, same_but_for_case

likely_names = st.text(st.characters(categories=["L", "M", "N"]) | st.sampled_from("_-. "), min_size=1, max_size=20)


@pytest.mark.parametrize(
    "name", ["notes", "a", "plan.v1", "a b", "_x", "ä", "สวัสดี", "日本語", "Привет", "١٢", "a-b_c.d", "x" * 200]
)
def test_a_name_of_letters_marks_and_digits_of_any_script_is_kept(name):
    assert context_name(name) == name


def parsed(name):
    """The stored form of a name, or the reason why it has none."""
    try:
        return context_name(name), ""
    except InvalidNameError as error:
        return None, str(error)


@given(likely_names | st.text())
@example("con\u00b9")
@example("e\u0301")
def test_an_accepted_name_is_safe_everywhere_and_stays_as_it_is(name):
    stored, reason = parsed(name)
    if stored is None:
        assert len(reason.splitlines()) == 1
        return
    assert context_name(stored) == stored
    assert stored == unicodedata.normalize("NFC", stored) == unicodedata.normalize("NFC", name)
    assert 0 < len(stored.encode()) <= 200
    assert not set(stored) & set('/\\:*?"<>|\0~$')
    assert stored[0] not in ".- "
    assert stored[-1] not in ". "
    assert stored.isprintable()


@given(
    st.sampled_from(["con", "prn", "aux", "nul", "com0", "com1", "com9", "com¹", "lpt3", "lpt²"]),
    st.sampled_from(["", ".", ".txt", ".a.b", " .x"]),
)
def test_c20_a_name_that_windows_reserves_is_refused_whatever_its_case_and_extension(device, extension):
    for name in (device + extension, device.upper() + extension, device.title() + extension):
        with pytest.raises(InvalidNameError):
            context_name(name)


@pytest.mark.parametrize("name", ["console", "nul-1", "a.con", "com", "com10", "lpt", "xaux"])
def test_a_name_that_only_looks_reserved_is_accepted(name):
    assert context_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "-x",
        ".",
        "..",
        "../x",
        "a/b",
        "a\\b",
        ".x",
        "x.",
        "x. ",
        " x",
        "x ",
        "a:b",
        "what?",
        "a*",
        "a\nb",
        "a\tb",
        "a\0b",
        "x" * 201,
        "ä" * 101,
        "\ud800",
        "a\u200bb",
        "a\u202eb",
        "~",
        "x~",
        "🎉",
        "a\u00a0b",
        "\u115f",
        "\u1160",
        "\u3164",
        "a\u3164",
        "\uffa0",
        "notes\u034f",
        "notes\ufe0f",
        "$x",
        None,
        3,
        b"x",
    ],
)
def test_any_other_name_is_refused_with_a_reason(name):
    with pytest.raises(InvalidNameError):
        context_name(name)


@given(likely_names)
def test_letter_case_and_form_do_not_make_a_name_another(name):
    for other in (name.upper(), name.lower(), name.swapcase(), unicodedata.normalize("NFD", name)):
        if other.casefold() == name.casefold() or unicodedata.normalize("NFC", other) == name:
            assert same_but_for_case(name, other)
            assert same_but_for_case(other, name)


def test_names_that_differ_in_more_than_case_are_two():
    assert same_but_for_case("Straße", "STRASSE")
    assert same_but_for_case("É", "e\u0301")
    assert not same_but_for_case("a", "b")
    assert not same_but_for_case("e", "é")


CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@given(st.sampled_from("01234567"), st.text(CROCKFORD, min_size=25, max_size=25))
def test_c89_a_ulid_in_either_case_has_one_stored_form(first, rest):
    text = first + rest
    assert parse_ulid(text) == parse_ulid(text.lower()) == text


@given(st.text() | st.text(CROCKFORD, min_size=24, max_size=28))
@example("8" + "0" * 25)
@example(" " + "0" * 25)
@example("0" * 26 + "\n")
@example("\u0660" * 26)
@example("I" * 26)
def test_c88_anything_else_is_no_valid_id(text):
    if re.fullmatch(f"[0-7][{CROCKFORD}{CROCKFORD.lower()}]{{25}}", text, re.ASCII):
        assert parse_ulid(text) == text.upper()
        return
    with pytest.raises(InvalidIdError, match="not a valid id"):
        parse_ulid(text)


def test_c44_new_ids_are_in_the_order_of_their_making_across_threads():
    made: list[list[str]] = [[] for _ in range(4)]

    def make(into):
        into.extend(new_ulid() for _ in range(500))

    threads = [threading.Thread(target=make, args=(into,)) for into in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = [one for into in made for one in into]
    assert len(set(everything)) == 2000
    assert all(into == sorted(into) for into in made)
    assert all(parse_ulid(one) == one for one in everything)


@pytest.mark.parametrize("name", ["local/bot", "a/b", "team.x/bot_1-2", "0/1", "a" * 64 + "/" + "b" * 64])
def test_an_actor_is_a_namespace_and_a_name(name):
    assert actor_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "/bot",
        "team/",
        "team/sub/bot",
        "bot",
        "Team/Bot",
        " team/bot ",
        "team/bot\n",
        "",
        "-a/b",
        "a/.b",
        "a" * 65 + "/b",
        "é/b",
    ],
)
def test_c23_a_malformed_actor_is_refused_with_the_form_it_should_have(name):
    with pytest.raises(SessionValidationError, match="namespace/name"):
        actor_name(name)
