"""A context becomes a session and a session a context, and back: nothing of a user's is lost, refused or renamed."""

import json
from pathlib import Path

import pytest

from cleveragents import ContextManager, MessageDraft, open_sessions
from cleveragents.contexts.root import create_context
from cleveragents.contexts.transfer import files_of
from cleveragents.conversation.reserved import without_reserved
from cleveragents.integrations.contexts_and_sessions import context_of_session, session_of_context
from cleveragents.values.canonical import checksum

DATA = Path(__file__).with_name("data")

CALLS = [{"id": "c1", "name": "weather", "arguments": {"at": 1.0}}]
# Every name of ours, as a user's own.
USERS = {
    "config": "mine.yaml",
    "global_context": {"mine": 1},
    "context_state": {"mine": 2},
    "context_metadata": {"mine": 3},
    "session": {"mine": 4},
    "failed": True,
    "blank_content": "",
    "tool_calls": CALLS,
    "tool_call_id": "mine",
    "agent": "mine",
    "parts": ["mine"],
}


@pytest.fixture
def store(tmp_path):
    with open_sessions(f"sqlite:///{tmp_path}/s.db") as sessions:
        yield sessions


@pytest.fixture
def root(tmp_path):
    return tmp_path / "contexts"


def frozen(name):
    return (DATA / name).read_text(encoding="utf-8")


def context_from(root, session, name="made"):
    """The context that a session becomes, on disk."""
    create_context(root, name, files_of(context_of_session(session, name)))
    return ContextManager.open(name, root)


def session_from(store, context):
    """The stored session that a context becomes."""
    document = context.export()
    checked = session_of_context(document)
    return store.adopt(checked, {"context": context.name, "checksum": document["checksum"]}, document["checksum"])


def essence(session):
    """All of a session that an import has to keep, as JSON: 1, 1.0 and true differ."""
    document = session.as_export_dict()
    for name in ("session_id", "forked_from", "automation_level", "checksum"):
        del document[name]
    kept = {key: value for key, value in document["metadata"].items() if key != "imported_from"}
    document["metadata"], _ = without_reserved(kept, ["config"])
    return json.dumps(document, sort_keys=True)


def content_of(context):
    """All of a context but what of it tells of the session it was made of."""
    document = context.export()
    document["metadata"].pop("cleveragents", None)
    return json.dumps([document[key] for key in ("state", "global_context", "metadata", "messages")], sort_keys=True)


@pytest.fixture
def users_context(root):
    context = ContextManager("notes", root)
    context.add_message("user", "Where to?", USERS)
    context.add_message("assistant", None, USERS)
    context.add_message("tool", "sunny", USERS)
    context.add_message("tool", "rainy", {"tool_call_id": " ", "agent": 3, "parts": [], "tool_calls": "odd"})
    context.add_message("assistant", ["To the sea.", {"type": "image_url"}], USERS)
    context.add_message("assistant", " ", USERS)
    context.add_message("assistant", [], {"parts": ["mine"]})
    context.add_message("assistant", None, {"tool_calls": [1]})
    context.update_metadata(USERS)
    context.update_state(USERS)
    context.update_global_context(USERS)
    return context


@pytest.fixture
def users_session(store):
    session_id = store.create("team/bot", title="Holidays", metadata=USERS).session_id
    store.append_all(
        session_id,
        [
            MessageDraft("user", "Where to?", metadata=USERS),
            MessageDraft("assistant", "I'll look.", metadata=USERS),
            MessageDraft("assistant", None, tool_calls=[{"id": "c2"}], agent="planner", metadata=USERS),
            MessageDraft("assistant", None, tool_calls=CALLS, metadata={"tool_calls": [{**CALLS[0], "at": 1}]}),
            MessageDraft("tool", "sunny", tool_call_id="c2", metadata=USERS),
            MessageDraft("tool", "rainy", tool_call_id="message-5", metadata=USERS),
            MessageDraft("assistant", ["a", {"type": "image_url"}], metadata=USERS),  # type: ignore[arg-type]
            MessageDraft("assistant", "text", parts=["another"], agent="planner"),
            MessageDraft("assistant", "[nothing]", metadata=USERS),
        ],
    )
    return store.get(session_id)


def test_a_users_keys_in_a_context_survive_as_they_are(users_context, store, root):
    session = session_from(store, users_context)
    assert {key: session.messages[0].metadata[key] for key in USERS} == USERS
    assert session.messages[1].tool_calls == CALLS
    assert (session.messages[1].agent, session.messages[2].tool_call_id) == ("mine", "mine")
    back = context_from(root, session)
    assert content_of(back) == content_of(users_context)
    assert back.messages == users_context.messages
    assert essence(session_from(store, back)) == essence(session)


def test_a_users_keys_in_a_session_survive_as_they_are(users_session, store, root):
    context = context_from(root, users_session)
    assert {key: context.messages[0].metadata[key] for key in USERS} == USERS
    again = session_from(store, context)
    assert again.metadata == USERS | {"imported_from": again.metadata["imported_from"]}
    assert again.messages == users_session.messages
    assert essence(again) == essence(users_session)
    assert content_of(context_from(root, again, "again")) == content_of(context)


def test_what_a_session_alone_has_a_field_for_is_under_our_key_in_a_context(store, root):
    session_id = store.create().session_id
    store.append_all(
        session_id,
        [
            MessageDraft("assistant", None, tool_calls=CALLS, agent="planner"),
            MessageDraft("tool", "sunny", tool_call_id="c1"),
            MessageDraft("user", "text", parts=["another"]),
        ],
    )
    context = context_from(root, store.get(session_id))
    assert [message.metadata for message in context.messages] == [
        {"cleveragents": {"tool_calls": CALLS, "agent": "planner"}},
        {"cleveragents": {"tool_call_id": "c1"}},
        {"cleveragents": {"parts": ["another"]}},
    ]
    assert context.metadata.keys() == {"cleveragents"}
    assert context.metadata["cleveragents"]["session"]["session_id"] == session_id
    assert context.messages[0].content is None


def test_what_runs_keep_in_a_session_is_not_mixed_with_a_users(users_session, store, root):
    ours = {"config": "/x.yaml", "global_context": {"n": 1}}
    store.update(users_session.session_id, metadata={"cleveragents": ours})
    session = store.get(users_session.session_id)
    context = context_from(root, session)
    assert context.global_context == {"n": 1}
    again = session_from(store, context)
    # The file that it was run with chooses nothing in what it becomes.
    assert again.metadata["imported_from"]["config"] == "/x.yaml"
    kept = {"cleveragents": {"global_context": {"n": 1}}, "imported_from": again.metadata["imported_from"]}
    assert again.metadata == USERS | kept
    assert essence(again) == essence(session)


class TestVersionBefore:
    """What the version before wrote, which had its keys among the user's; frozen files of it are in ``data``."""

    def test_a_document_has_its_keys_in_their_new_place(self, store):
        session = store.import_(frozen("version_1.session.json"))
        assert session.metadata.pop("imported_from")["config"] == "/x/assistant.yaml"
        assert session.metadata == {"mine": {"config": 1}, "cleveragents": {"global_context": {"stage": 2}}}
        assert [message.metadata for message in session.messages if message.metadata] == [
            {"failed": True},  # a user's: it is no tool's message
            {"cleveragents": {"failed": True}},
            {"interrupted": True},
        ]
        stored = store.get(session.session_id)
        assert stored.messages == session.messages
        assert essence(store.import_(store.export(stored.session_id))) == essence(stored)

    def test_a_context_made_of_a_session_becomes_the_same_session(self, store, root):
        direct = store.import_(frozen("version_1.session.json"))
        context = ContextManager.import_from(DATA / "version_1_of_session.context.json", "old", root)
        again = session_from(store, context)
        assert again.messages == direct.messages
        assert essence(again) == essence(direct)

    def test_a_session_made_of_a_context_becomes_the_same_context(self, store, root):
        original = ContextManager.import_from(DATA / "version_1.context.json", "old", root)
        session = store.import_(frozen("version_1_of_context.session.json"))
        assert session.metadata.keys() == {"cleveragents", "imported_from"}
        back = context_from(root, session)
        assert (back.state, back.global_context) == (original.state, original.global_context)
        assert back.metadata["k"] == original.metadata["k"]
        *rest, last = original.messages
        assert back.messages[:-1] == rest
        # That version did not keep whether a user had written the calls; they are ours now.
        assert back.messages[-1].content == last.content
        assert back.messages[-1].metadata == {"cleveragents": {"tool_calls": last.metadata["tool_calls"]}}

    def test_a_users_key_named_session_is_no_session(self, store, root):
        context = ContextManager("notes", root)
        context.update_metadata({"session": {"session_id": "x"}})
        session = session_from(store, context)
        assert session.title == "notes"
        assert context_from(root, session).metadata["session"] == {"session_id": "x"}


def test_a_users_keys_survive_export_and_import(users_session, store):
    document = store.export(users_session.session_id)
    imported = store.import_(json.dumps(document))
    assert imported.metadata == USERS | {"imported_from": imported.metadata["imported_from"]}
    assert imported.messages == users_session.messages
    assert essence(imported) == essence(users_session)


def test_a_document_that_says_nothing_of_our_key_is_of_the_version_before(users_session, store):
    document = store.export(users_session.session_id)
    del document["metadata"]["cleveragents"], document["checksum"]
    imported = store.import_(document | {"checksum": checksum(document)})
    kept = ("global_context", "context_state", "context_metadata")
    assert imported.metadata["cleveragents"] == {key: USERS[key] for key in kept}
    assert imported.metadata["imported_from"]["config"] == USERS["config"]
    assert imported.messages[4].metadata["cleveragents"] == {"failed": True}
    assert imported.messages[0].metadata == USERS
