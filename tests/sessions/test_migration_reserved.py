"""Our keys in metadata have a place of their own since schema 2; what was stored before is moved there, on upgrade."""

import json

import pytest

from cleveragents import open_sessions
from cleveragents.sessions.open import open_database
from support.frozen import CHECKSUMS, checksum_of_1_0, run_script

SET_METADATA = "UPDATE sessions SET metadata = '{metadata}' WHERE id = '{id}'"
ADD_MESSAGE = """
INSERT INTO messages (session_id, sequence, role, content, tool_call_id, metadata, created_at)
SELECT id, message_count, '{role}', '{content}', 'c', '{metadata}', 0 FROM sessions WHERE id = '{id}';
UPDATE sessions SET message_count = message_count + 1 WHERE id = '{id}'
"""
ADD_MANY = """
INSERT INTO messages (session_id, sequence, role, content, tool_call_id, metadata, created_at)
WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2499)
SELECT id, message_count + n, 'tool', 'x', 'c', CASE WHEN n % 2 = 0 THEN '{{"failed":true}}' END, 0
FROM sessions, numbers WHERE id = '{id}';
UPDATE sessions SET message_count = message_count + 2500 WHERE id = '{id}'
"""


def store_metadata(url, session_id, metadata, *messages):
    """Write into a database of schema 1 what the version before had stored of a session, and messages to its end."""
    statements = [SET_METADATA.format(id=session_id, metadata=json.dumps(metadata, ensure_ascii=False))]
    for role, content, of_message in messages:
        kept = json.dumps(of_message)
        statements.append(ADD_MESSAGE.format(id=session_id, role=role, content=content, metadata=kept))
    run_script(url, ";\n".join(statements))


@pytest.fixture
def a_session():
    """A session of the frozen database."""
    return next(iter(CHECKSUMS))


def test_what_runs_had_stored_of_a_session_moves(frozen_url, a_session):
    old = {
        "mine": {"config": 1},
        "config": "/x/ü\u0000.yaml",
        "global_context": {"n": 2**60, "f": 6.0},
        "context_state": {"s": 1},
        "context_metadata": {"m": None},
    }
    store_metadata(frozen_url, a_session, old)
    with open_sessions(frozen_url) as sessions:
        metadata = sessions.summary(a_session).metadata
        assert json.dumps(metadata.pop("cleveragents"), sort_keys=True) == json.dumps(
            {key: old[key] for key in ("config", "context_metadata", "context_state", "global_context")}, sort_keys=True
        )
        assert metadata == {"mine": old["mine"]}
        sessions.verify(a_session)


def test_the_file_that_an_import_was_run_with_is_none_to_go_on_with(frozen_url, a_session):
    store_metadata(frozen_url, a_session, {"config": "/x.yaml", "imported_from": {"session_id": "x"}})
    with open_sessions(frozen_url) as sessions:
        summary = sessions.summary(a_session)
    assert summary.metadata == {"imported_from": {"session_id": "x", "config": "/x.yaml"}}
    assert summary.only_imported


def test_a_users_own_values_of_these_names_stay(frozen_url, a_session):
    kept = {"config": {"mine": 1}, "global_context": "mine", "context_state": [1], "context_metadata": None}
    store_metadata(
        frozen_url,
        a_session,
        kept,
        ("user", "a", {"failed": True}),
        ("tool", "b", {"failed": False}),
        ("tool", "c", {"failed": 1}),
        ("assistant", "d", {"blank_content": ""}),
        ("assistant", "[nothing]", {"blank_content": "mine"}),
        ("user", "e", {"the key": '"failed"'}),
    )
    with open_sessions(frozen_url) as sessions:
        assert sessions.summary(a_session).metadata == kept
        found = [message.metadata for message in sessions.last_messages(a_session, 6)]
    assert json.dumps(found) == json.dumps(
        [
            {"failed": True},
            {"failed": False},
            {"failed": 1},
            {"blank_content": ""},
            {"blank_content": "mine"},
            {"the key": '"failed"'},
        ]
    )


def test_marks_of_messages_move(frozen_url, a_session):
    store_metadata(
        frozen_url,
        a_session,
        {},
        ("tool", "a", {"failed": True, "mine": 1}),
        ("assistant", "[nothing]", {"blank_content": [""]}),
        ("assistant", "[nothing]", {"interrupted": True, "blank_content": None}),
        ("tool", "b", {"failed": True, "cleveragents": {"other": 1}}),
        ("tool", "c", {"failed": True, "cleveragents": "mine"}),
    )
    with open_sessions(frozen_url) as sessions:
        assert [message.metadata for message in sessions.last_messages(a_session, 5)] == [
            {"mine": 1, "cleveragents": {"failed": True}},
            {"cleveragents": {"blank_content": [""]}},
            {"interrupted": True, "cleveragents": {"blank_content": None}},
            {"cleveragents": {"other": 1, "failed": True}},
            {"failed": True, "cleveragents": "mine"},
        ]


def test_every_row_of_many_is_reached(frozen_url, a_session):
    run_script(frozen_url, ADD_MANY.format(id=a_session))
    with open_sessions(frozen_url) as sessions:
        found = [message.metadata for message in sessions.last_messages(a_session, 2500)]
        assert found == [{"cleveragents": {"failed": True}}, {}] * 1250


def test_what_cannot_be_read_is_left_for_verify_to_tell(frozen_url, a_session):
    run_script(frozen_url, SET_METADATA.format(id=a_session, metadata='{"config":'))
    with open_sessions(frozen_url) as sessions:
        others = [id_ for id_ in CHECKSUMS if id_ != a_session]
        assert [checksum_of_1_0(sessions.export(id_)) for id_ in others[:5]] == [CHECKSUMS[id_] for id_ in others[:5]]
    database = open_database(frozen_url)
    broken = "SELECT id FROM sessions WHERE metadata = '{\"config\":'"
    assert [row["id"] for row in database.query(broken, {})] == [a_session]
    database.close()
