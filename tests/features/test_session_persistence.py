import json

import pytest
from pytest_bdd import given, parsers, scenarios, then, when

from cleveragents import TokenUsage, errors, open_sessions
from cleveragents.values.ids import new_ulid, parse_ulid

scenarios("session_persistence.feature")

# Asked for by name, so that every scenario runs once for each kind of database.
pytestmark = pytest.mark.usefixtures("database_url")

NOTES = {"model": "m-1", "scores": [1, 2.5, None, True], "größe": {"x": {}}}
PARTS = [{"type": "text", "text": "see"}, {"type": "image", "url": "data:image/png;base64,AAAA"}]
CALLS = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}]


@pytest.fixture
def failure():
    """The error of what was tried."""
    return []


@pytest.fixture
def elsewhere(database_url):
    """The same database as another process sees it."""
    with open_sessions(database_url) as service:
        yield service


# --- sessions -------------------------------------------------------------------------------------------


@when("a session is created", target_fixture="session")
@given("a stored session", target_fixture="session")
def created(sessions):
    return sessions.create()


@when(parsers.parse('a session is created for the actor "{actor}"'), target_fixture="session")
def created_for(sessions, actor):
    return sessions.create(actor)


@given(parsers.parse("a stored session with {count:d} messages"), target_fixture="session")
def created_with_messages(sessions, count):
    session = sessions.create("team/planner")
    for number in range(count):
        sessions.append(session.session_id, "assistant" if number % 2 else "user", f"message {number}")
    return session


@given("3 stored sessions", target_fixture="stored")
def three(sessions):
    return [sessions.create().session_id for _ in range(3)]


@given("a stored session with a value in every field", target_fixture="session")
def full(sessions):
    session = sessions.create(
        "team/planner",
        namespace="team",
        title="Über alles",
        automation_level="review_before_apply",
        metadata=NOTES,
        tags=["urgent", "März"],
    )
    sessions.append(session.session_id, "user", "Hello")
    sessions.link_plan(session.session_id, "01BX5ZZKBKACTAV9WEVGEMMVRZ", "draft", "open")
    sessions.add_usage(session.session_id, 12, 3, 0.000000001, llm="local")
    return session


@when("another process looks for it", target_fixture="found")
def found(elsewhere, session):
    return elsewhere.get(session.session_id)


@then("what it finds has a ULID for an id")
def found_id(found):
    assert parse_ulid(found.session_id) == found.session_id


@then(parsers.parse('what it finds is in the namespace "{namespace}" and holds {count:d} messages'))
def found_namespace(found, namespace, count):
    assert (found.namespace, found.message_count) == (namespace, count)


@then(parsers.parse('what it finds belongs to the actor "{actor}"'))
def found_actor(found, actor):
    assert found.actor_name == actor


@then("what it finds equals what was created")
def found_equal(found, session):
    assert found == session


@then("what it finds has all these values")
def found_values(found, session):
    assert (found.actor_name, found.namespace, found.title) == ("team/planner", "team", "Über alles")
    assert (found.automation_level, found.tags) == ("review_before_apply", ["März", "urgent"])
    assert found.metadata == NOTES
    assert [(plan.plan_id, plan.phase, plan.state) for plan in found.linked_plans] == [
        ("01BX5ZZKBKACTAV9WEVGEMMVRZ", "draft", "open")
    ]
    assert found.token_usage == TokenUsage(12, 3, 0.000000001)
    assert [(entry.llm, entry.input_tokens, entry.estimated_cost) for entry in found.usage_entries] == [
        ("local", 12, 0.000000001)
    ]
    assert [message.content for message in found.messages] == ["Hello"]
    assert found.created_at == session.created_at
    assert found.updated_at >= found.created_at


@when("the sessions are listed", target_fixture="listed")
def listed(elsewhere):
    return [summary.session_id for summary in elsewhere.list()]


@then("the list names exactly these 3, the newest first")
def names_all(listed, stored):
    assert listed == stored[::-1]


@then("the list names nothing")
def names_nothing(listed):
    assert listed == []


@when("the second of them is deleted")
def delete_second(sessions, stored):
    sessions.delete(stored[1])


@then("looking for it gives SessionNotFoundError")
def not_found(elsewhere, stored):
    for look in (elsewhere.get, elsewhere.summary, elsewhere.messages, elsewhere.count):
        with pytest.raises(errors.SessionNotFoundError, match=stored[1]):
            look(stored[1])


@then("the other two are listed")
def others_listed(elsewhere, stored):
    assert [summary.session_id for summary in elsewhere.list()] == [stored[2], stored[0]]


@when("a session that does not exist is deleted")
def delete_nothing(sessions, failure):
    attempt(failure, lambda: sessions.delete(new_ulid()))


@when("a message is appended to a session that does not exist")
def append_to_nothing(sessions, failure):
    attempt(failure, lambda: sessions.append(new_ulid(), "user", "Hello?"))


@when("usage is entered for a session that does not exist")
def use_nothing(sessions, failure):
    attempt(failure, lambda: sessions.add_usage(new_ulid(), 1, 1, 0.1))


def attempt(failure, action):
    try:
        action()
    except errors.SessionServiceError as error:
        failure.append(error)


@then("SessionNotFoundError tells so")
def tells_so(failure):
    assert isinstance(failure[0], errors.SessionNotFoundError)


# --- messages -------------------------------------------------------------------------------------------


@when(parsers.parse('the user\'s "{text}" is appended'), target_fixture="message")
def append(sessions, session, text):
    return sessions.append(session.session_id, "user", text)


@then(parsers.parse('the message that comes back is the user\'s "{text}"'))
def comes_back(message, text):
    assert (message.sequence, message.role, message.content) == (0, "user", text)


@then(parsers.parse('another process reads the user\'s "{text}"'))
def read_elsewhere(elsewhere, session, message, text):
    assert elsewhere.messages(session.session_id) == [message]
    assert message.content == text


@when("all messages are read", target_fixture="read")
def read_all(elsewhere, session):
    return elsewhere.messages(session.session_id)


@when(parsers.parse("at most {limit:d} messages are read from number {offset:d} on"), target_fixture="read")
def read_page(elsewhere, session, limit, offset):
    return elsewhere.messages(session.session_id, limit=limit, offset=offset)


@then(parsers.parse("they are numbered {first:d} to {last:d}"))
@then(parsers.parse("they are numbered {first:d} to {last:d} and read as they were appended"))
def numbered(read, first, last):
    assert [message.sequence for message in read] == list(range(first, last + 1))
    assert [message.content for message in read] == [f"message {number}" for number in range(first, last + 1)]


@then(parsers.parse("the count is {count:d}"))
def counted(elsewhere, session, count):
    assert elsewhere.count(session.session_id) == count


@when("a message with notes, parts and tool calls is appended", target_fixture="message")
def append_full(sessions, session):
    return sessions.append(
        session.session_id, "assistant", None, metadata=NOTES, parts=PARTS, tool_calls=CALLS, agent="writer"
    )


@then("another process reads the same notes, parts and tool calls")
def same_notes(elsewhere, session, message):
    (found,) = elsewhere.messages(session.session_id)
    assert (found.metadata, found.parts, found.tool_calls, found.agent) == (NOTES, PARTS, CALLS, "writer")
    assert found == message


# --- documents and usage --------------------------------------------------------------------------------


@when("the session is exported", target_fixture="document")
def exported(sessions, session):
    return sessions.export(session.session_id)


@then(parsers.parse("the document has a schema version, a checksum and {count:d} messages"))
def document_has(document, count):
    assert document["schema_version"] == "1.1"
    assert document["checksum"].startswith("sha256:")
    assert len(document["messages"]) == count


@when("the document is imported", target_fixture="imported")
def imported(sessions, document):
    return sessions.import_(document)


@then(parsers.parse("the imported session has the same {count:d} messages and another id"))
def imported_messages(elsewhere, session, imported, count):
    assert elsewhere.messages(imported.session_id) == elsewhere.messages(session.session_id)
    assert elsewhere.count(imported.session_id) == count
    assert imported.session_id != session.session_id


@when(parsers.parse('the document claims schema version "{version}"'), target_fixture="document")
def claim_version(document, version):
    return document | {"schema_version": version}


@when("a word in the document is changed", target_fixture="document")
def change_word(document):
    return json.loads(json.dumps(document).replace("message 1", "message 7"))


@then("importing it gives SessionImportError, and stores nothing")
def import_refused(sessions, session, document):
    with pytest.raises(errors.SessionImportError):
        sessions.import_(document)
    assert [summary.session_id for summary in sessions.list()] == [session.session_id]


@when(parsers.parse("{given:d} and {got:d} tokens for {cost:g} dollars are used"))
def use(sessions, session, given, got, cost):
    sessions.add_usage(session.session_id, given, got, cost)


@then(parsers.parse("another process reads a usage of {given:d} and {got:d} tokens for {cost:g} dollars"))
def used(elsewhere, session, given, got, cost):
    assert elsewhere.summary(session.session_id).token_usage == TokenUsage(given, got, cost)
    assert elsewhere.get(session.session_id).token_usage.estimated_cost == cost
