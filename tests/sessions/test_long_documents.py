"""A session of any length is written, verified and read back a message at a time."""

import json
import resource
import signal
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from tempfile import gettempdir

import pytest

from cleveragents import MessageDraft, errors, open_sessions
from cleveragents.disk.export_file import export_bytes
from cleveragents.sessions import document_pieces
from cleveragents.sessions import received as received_module
from cleveragents.sessions.open import open_database
from cleveragents.sessions.received import check_document, received
from support.everything import fill
from support.sessions import ids, rows_in_tables, user

_BLOCK = 2**16

# Imports a session that it exports, and ends in the middle of storing it.
KILLED = """
import os, signal, sys
from dataclasses import replace
from cleveragents import open_sessions
from cleveragents.sessions.received import received

def broken_off(messages):
    for message in messages:
        if message.sequence == 150:
            os.kill(os.getpid(), signal.SIGKILL)
        yield message

with open_sessions(sys.argv[1]) as sessions, received(sessions.export_pieces(sys.argv[2])) as whole:
    session = replace(whole.session, messages=lambda: broken_off(whole.session.messages()))
    sessions.import_received(replace(whole, session=session))
"""


def backwards(document):
    """The text of a document with its messages before most of what they are hashed after."""
    return json.dumps(dict(reversed(document.items()))).encode()


def exported(sessions, session_id):
    return b"".join(sessions.export_pieces(session_id))


def in_blocks(content):
    return (content[start : start + _BLOCK] for start in range(0, len(content), _BLOCK))


def of_users_own_failed(sessions):
    """A session whose messages have a key that the version before had for ours."""
    session_id = sessions.create().session_id
    sessions.append_all(session_id, user(*map(str, range(150))))
    sessions.append(session_id, "tool", "x", tool_call_id="c", metadata={"failed": True})
    return session_id


def of_many(sessions):
    session_id = sessions.create(metadata={"k": [1, {}, []]}, tags=["a"]).session_id
    sessions.append_all(session_id, user(*(f"message {number}" for number in range(200))))
    for number in range(205):
        sessions.add_usage(session_id, number, 1, 0.25, llm="local")
    return session_id


@pytest.mark.parametrize(
    "make",
    [fill, of_users_own_failed, of_many, lambda sessions: sessions.create().session_id],
    ids=["everything", "marked", "many", "empty"],
)
def test_an_export_in_pieces_is_byte_for_byte_the_one_in_memory(sessions, make):
    session_id = make(sessions)
    document = sessions.export(session_id)
    content = exported(sessions, session_id)
    assert content == export_bytes(document)
    summary, checksum = check_document(in_blocks(content))
    assert (summary.session_id, summary.message_count) == (session_id, len(document["messages"]))
    assert checksum == document["checksum"] == sessions.verify(session_id)


@pytest.mark.parametrize("text", [export_bytes, backwards])
def test_a_document_of_any_order_is_read_back_whole(sessions, text):
    for session_id in (fill(sessions), of_users_own_failed(sessions), of_many(sessions)):
        document = sessions.export(session_id)
        with received(in_blocks(text(document))) as whole:
            copy = sessions.get(sessions.import_received(whole).session_id)
        original = sessions.get(session_id)
        assert copy.messages == original.messages
        assert copy.usage_entries == original.usage_entries
        assert copy.token_usage == original.token_usage
        assert copy.metadata["imported_from"]["checksum"] == document["checksum"]


def test_an_export_is_of_one_moment_whatever_is_said_meanwhile(sessions):
    session_id = of_many(sessions)
    before = export_bytes(sessions.export(session_id))
    pieces = sessions.export_pieces(session_id)
    begun = next(pieces)
    sessions.append(session_id, "user", "meanwhile")
    sessions.add_usage(session_id, 1, 1, None)
    assert begun + b"".join(pieces) == before


def test_a_message_that_is_not_there_any_more_ends_the_export(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    for missing in ("sequence = 150", "sequence = 199", "sequence >= 100"):
        with open_sessions(url) as sessions:
            session_id = of_many(sessions)
            database = open_database(url)
            with database.writing() as db:
                db.rows(f"DELETE FROM messages WHERE {missing} AND session_id = :id", {"id": session_id})  # noqa: S608
            database.close()
            for read in (exported, type(sessions).verify):
                with pytest.raises(errors.SessionDamagedError, match="some are missing"):
                    read(sessions, session_id)


def test_nobody_sees_an_import_before_it_is_whole(sessions, database_url):
    session_id = of_many(sessions)
    seen = []

    def looked_at(messages):
        for message in messages:
            if message.sequence == 150:
                with open_sessions(database_url) as others:
                    seen.extend(ids(others.list()))
            yield message

    with received(sessions.export_pieces(session_id)) as whole:
        session = replace(whole.session, messages=lambda: looked_at(whole.session.messages()))
        copy = sessions.import_received(replace(whole, session=session))
    assert seen == [session_id]
    assert set(ids(sessions.list())) == {session_id, copy.session_id}


def test_a_kill_while_an_import_is_stored_leaves_nothing_of_it(tmp_path):
    url = f"sqlite:///{tmp_path}/x.db"
    with open_sessions(url) as sessions:
        session_id = of_many(sessions)
        before = rows_in_tables(url)
        done = subprocess.run([sys.executable, "-c", KILLED, url, session_id], check=False)
        assert done.returncode == -signal.SIGKILL
        assert rows_in_tables(url) == before
        with received(sessions.export_pieces(session_id)) as whole:
            assert sessions.import_received(whole).message_count == 200


def test_a_document_for_which_the_disk_has_no_room_is_one_line(sessions):
    document = sessions.export(of_many(sessions))
    longer = document | {"messages": [{"content": "x" * 1000}] * 3000}
    old, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, hard))
    try:
        with pytest.raises(errors.StorageError, match=f"cannot write {gettempdir()}"):
            check_document(in_blocks(backwards(longer)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (old, hard))


def test_what_would_not_be_read_back_is_not_written(sessions, monkeypatch):
    monkeypatch.setattr(document_pieces, "LARGEST_VALUE", 2000)
    session_id = sessions.create().session_id
    sessions.append_all(session_id, user("short", "x" * 2000))
    with pytest.raises(errors.SessionExportError, match=r"messages\[1\]: more than 2,000 characters"):
        exported(sessions, session_id)
    session_id = sessions.create(metadata={"long": "x" * 2000}).session_id
    with pytest.raises(errors.SessionExportError, match="more than 2,000 characters"):
        exported(sessions, session_id)


def test_a_value_above_the_limit_is_refused(sessions, monkeypatch):
    monkeypatch.setattr(received_module, "LARGEST_VALUE", 2 * _BLOCK)
    document = sessions.export(of_many(sessions))
    for longer in (document | {"metadata": {"long": "x" * 5 * _BLOCK}}, document | {"messages": ["x" * 5 * _BLOCK]}):
        with pytest.raises(errors.SessionImportError, match="more than 131,072 characters"):
            check_document(in_blocks(json.dumps(longer).encode()))


def test_deep_nesting_that_was_stored_comes_back(sessions):
    deep: list = []
    for _ in range(195):
        deep = [deep]
    session_id = sessions.create().session_id
    sessions.append(session_id, "user", "x", metadata={"deep": deep})
    for form in (sessions.export(session_id), exported(sessions, session_id)):
        assert sessions.import_(form).messages[0].metadata == {"deep": deep}


def test_memory_does_not_grow_with_the_conversation(tmp_path):
    def peak(call):
        tracemalloc.start()
        try:
            call()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    def write():
        with file.open("wb") as out:
            out.writelines(sessions.export_pieces(session_id))

    def read(check):
        with file.open("rb") as source:
            check(iter(lambda: source.read(_BLOCK), b""))

    def bring_in(pieces):
        with received(pieces) as whole:
            assert sessions.import_received(whole).message_count == 1000

    file = tmp_path / "long.json"
    with open_sessions(f"sqlite:///{tmp_path}/long.db") as sessions:
        session_id = sessions.create().session_id
        sessions.append_all(session_id, [MessageDraft("user", "x" * 20_000)] * 1000)
        most = 9_000_000
        assert peak(write) < most
        assert file.stat().st_size > 2 * most
        assert peak(lambda: read(check_document)) < most
        assert peak(lambda: read(bring_in)) < most
        assert peak(lambda: sessions.verify(session_id)) < most
        file.write_bytes(backwards(json.loads(file.read_bytes())))
        assert peak(lambda: read(bring_in)) < most
