"""Our keys in metadata beside a user's of the same names."""

import pytest

from cleveragents.conversation.reserved import (
    CONFIG,
    FAILED,
    moved_of_message,
    moved_of_session,
    reserved,
    with_reserved,
    without_reserved,
)

USERS = {"config": "mine", "failed": True, "x": 1}


def test_ours_are_written_and_read_beside_a_users_of_the_same_name():
    metadata = with_reserved(USERS, {CONFIG: "/x.yaml"})
    assert metadata == USERS | {"cleveragents": {"config": "/x.yaml"}}
    assert reserved(metadata, CONFIG) == "/x.yaml"
    assert reserved(metadata, FAILED) is None
    assert with_reserved(metadata, {FAILED: True}) == USERS | {"cleveragents": {"config": "/x.yaml", "failed": True}}
    assert with_reserved(USERS, {}) == USERS


def test_ours_are_taken_out_and_leave_nothing_behind():
    metadata = with_reserved(USERS, {CONFIG: "/x.yaml", FAILED: True})
    rest, taken = without_reserved(metadata, [CONFIG, "session"])
    assert (rest, taken) == (USERS | {"cleveragents": {"failed": True}}, {"config": "/x.yaml"})
    assert without_reserved(rest, [FAILED]) == (USERS, {"failed": True})
    assert without_reserved(USERS, [CONFIG]) == (USERS, {})


@pytest.mark.parametrize("odd", ["mine", None, [1]])
def test_another_value_in_the_place_of_ours_holds_none_of_them(odd):
    metadata = {"cleveragents": odd}
    assert reserved(metadata, CONFIG) is None
    assert with_reserved(metadata, {CONFIG: "x"}) == {"cleveragents": {"config": "x"}}


def test_of_the_version_before_only_what_was_ours_by_its_kind_is_moved():
    assert moved_of_session({"config": "x", "global_context": {"a": 1}, "y": 2}) == {
        "y": 2,
        "cleveragents": {"config": "x", "global_context": {"a": 1}},
    }
    users = {"config": {"a": 1}, "global_context": "x", "failed": True}
    assert moved_of_session(users) == users
    assert moved_of_message("tool", "x", {"failed": True}) == {"cleveragents": {"failed": True}}
    assert moved_of_message("assistant", "[nothing]", {"blank_content": [" "]}) == {
        "cleveragents": {"blank_content": [" "]}
    }
    for role, content, metadata in (
        ("user", "x", {"failed": True}),
        ("tool", "x", {"failed": 1}),
        ("user", "x", {"blank_content": ""}),
        ("user", "[nothing]", {"blank_content": "x"}),
    ):
        assert moved_of_message(role, content, metadata) == metadata
