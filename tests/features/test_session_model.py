import pytest
from pytest_bdd import given, parsers, scenarios, then, when

from cleveragents import MessageRole, Session, SessionMessage, TokenUsage, errors

scenarios("session_model.feature")

ID = "01KB1A2B3C4D5E6F7G8H9JKMNP"


@pytest.fixture
def refused():
    """The error of what was tried."""
    return []


def attempt(refused, action):
    try:
        action()
    except ValueError as error:
        refused.append(error)


# --- making sessions ------------------------------------------------------------------------------------


@when(parsers.parse('a session is made with the id "{text}"'), target_fixture="session")
def made_with_id(text):
    return Session(text)


@when(parsers.parse('a session is made for the actor "{actor}"'), target_fixture="session")
def made_for_actor(actor):
    return Session(ID, actor_name=actor)


@when("a session is made for no actor", target_fixture="session")
def made_for_nobody():
    return Session(ID, actor_name=None)


@when(parsers.parse('a session is made with the note "{key}" that says "{value}"'), target_fixture="session")
def made_with_note(key, value):
    return Session(ID, metadata={key: value})


@given("an empty session", target_fixture="session")
def empty():
    return Session(ID)


@given(parsers.parse("a session with {count:d} messages"), target_fixture="session")
def with_messages(count):
    session = Session(ID)
    for number in range(count):
        session.append_message("assistant" if number % 2 else "user", f"text {number}")
    return session


@given(
    parsers.parse("a session that has used {given:d} and {got:d} tokens for {cost:g} dollars"),
    target_fixture="session",
)
def with_usage(given, got, cost):
    return Session(ID, token_usage=TokenUsage(given, got, cost))


@given(parsers.parse('a session for the actor "{actor}" that does everything by itself'), target_fixture="session")
def automatic(actor):
    return Session(ID, actor_name=actor, automation_level="full_automation")


@when(parsers.parse('a session with the id "{text}" is tried'))
def try_id(refused, text):
    attempt(refused, lambda: Session(text))


@when(parsers.parse('a session for the actor "{actor}" is tried'))
def try_actor(refused, actor):
    attempt(refused, lambda: Session(ID, actor_name=actor))


@when(parsers.parse("a session is tried with messages numbered {numbers}"))
def try_numbers(refused, numbers):
    messages = [SessionMessage(int(number), "user", "x") for number in numbers.split(",")]
    attempt(refused, lambda: Session(ID, messages=messages))


@then(parsers.parse('it is refused, and the reason says "{text}"'))
def is_refused(refused, text):
    assert isinstance(refused[0], errors.CleverAgentsError)
    assert text in str(refused[0])


@then(parsers.parse('its id is "{text}"'))
def has_id(session, text):
    assert session.session_id == text


@then(parsers.parse('it belongs to the namespace "{name}"'))
def has_namespace(session, name):
    assert session.namespace == name


@then(parsers.parse('its actor is "{actor}"'))
def has_actor(session, actor):
    assert session.actor_name == actor


@then("it has no actor")
def has_no_actor(session):
    assert session.actor_name is None


@then(parsers.parse('its note "{key}" says "{value}"'))
def has_note(session, key, value):
    assert session.metadata == {key: value}


# --- messages -------------------------------------------------------------------------------------------


@when(parsers.parse('the {role} says "{text}"'))
def says(session, role, text):
    session.append_message(role, text)


@then(parsers.re(r"the session holds (?P<count>\d+) messages?"), converters={"count": int})
def holds(session, count):
    assert session.message_count == len(session.messages) == count


@then(parsers.parse('the last message is number {number:d}, from the {role}, and reads "{text}"'))
def last_is(session, number, role, text):
    last = session.last_message
    assert (last.sequence, last.role, last.content) == (number, role, text)


@then("it is empty and has no last message")
def is_empty(session):
    assert session.is_empty
    assert session.last_message is None


@when("a message of the tool is tried without the id of a call")
def try_tool(refused):
    attempt(refused, lambda: SessionMessage(0, "tool", "42"))


@when(parsers.parse('the tool answers the call "{call}"'), target_fixture="message")
def tool_answers(call):
    return SessionMessage(0, MessageRole.TOOL, "42", tool_call_id=call)


@when("a message of the user is made without the id of a call", target_fixture="message")
def user_message():
    return SessionMessage(0, MessageRole.USER, "How much?")


@when(parsers.parse("a message of the user is tried with {kind} content"))
def try_content(refused, kind):
    attempt(refused, lambda: SessionMessage(0, "user", {"blank": " \t\n", "empty": ""}[kind]))


@then(parsers.parse('the message names the call "{call}"'))
def names_call(message, call):
    assert message.tool_call_id == call


@then("the message names no call")
def names_no_call(message):
    assert message.tool_call_id is None


@then("the roles are user, assistant, system and tool, and no other")
def roles():
    assert [role.value for role in MessageRole] == ["user", "assistant", "system", "tool"]


def number_of(text):
    return int(text.split()[-1]) if text.split()[-1].isdigit() else None


@when(parsers.re("messages are read with (?P<limit>no limit|limit .*) and (?P<offset>.*)"), target_fixture="read")
def read(session, limit, offset):
    return session.get_messages(number_of(limit), number_of(offset) or 0)


@then(parsers.parse("these are read: {numbers}"))
def are_read(read, numbers):
    assert ", ".join(str(message.sequence) for message in read) == ("" if numbers == "none" else numbers)


# --- plans and usage ------------------------------------------------------------------------------------


@when(parsers.parse('the plan "{plan}" is linked in phase "{phase}"'))
def link(session, plan, phase):
    session.link_plan(plan, phase)


@then(parsers.re(r"(?P<count>\d) plans? (is|are) linked"), converters={"count": int})
def linked(session, count):
    assert len(session.linked_plan_ids) == count


@then(parsers.parse('the plan "{plan}" is in phase "{phase}"'))
def in_phase(session, plan, phase):
    assert [(each.plan_id, each.phase) for each in session.linked_plans] == [(plan, phase)]


@then(parsers.parse("it has used {given:d} and {got:d} tokens for {cost:g} dollars"))
def has_used(session, given, got, cost):
    assert session.token_usage == TokenUsage(given, got, cost)
    assert session.token_usage.input_tokens == given
    assert session.token_usage.output_tokens == got
    assert session.token_usage.estimated_cost == cost


@when(parsers.parse("a usage of {given:d} and {got:d} tokens for {cost} dollars is tried"))
def try_usage(refused, given, got, cost):
    attempt(refused, lambda: TokenUsage(given, got, float(cost)))


# --- export and display ---------------------------------------------------------------------------------


@when("it is exported", target_fixture="document")
def export(session):
    return session.as_export_dict()


@then("the keys of the document are, in this order")
def keys(document, datatable):
    assert list(document) == [row[0] for row in datatable[1:]]
    assert document["schema_version"] == "1.1"
    assert document["checksum"].startswith("sha256:")


@then(parsers.parse("the document holds the {count:d} messages of the session, by number"))
def document_messages(document, session, count):
    assert [message["sequence"] for message in document["messages"]] == list(range(count))
    assert [message["content"] for message in document["messages"]] == [each.content for each in session.messages]


@then(parsers.parse('the document names the plan "{plan}"'))
def document_plan(document, plan):
    assert document["linked_plan_ids"] == [plan]
    assert document["linked_plans"] == [{"plan_id": plan, "phase": "draft", "state": None}]


@when("it is shown", target_fixture="shown")
def show(session):
    return session.as_cli_dict()


@then("session_id, message_count, created_at, updated_at, token_usage and namespace are shown")
def facts(shown, session):
    assert shown["session_id"] == session.session_id
    assert shown["message_count"] == session.message_count
    assert shown["created_at"] <= shown["updated_at"]
    assert shown["token_usage"]["input_tokens"] == 0
    assert shown["namespace"] == "local"


@then(parsers.parse("the recent messages are the last {count:d}"))
def recent(shown, session, count):
    assert [each["content"] for each in shown["recent_messages"]] == [each.text for each in session.messages[-count:]]


@then(parsers.parse('the actor "{actor}" and the level "{level}" are shown'))
def shown_actor(shown, actor, level):
    assert (shown["actor_name"], shown["automation_level"]) == (actor, level)


# --- errors ---------------------------------------------------------------------------------------------


@then("an error of the session service is an exception")
def base_error():
    assert issubclass(errors.SessionServiceError, Exception)


@then("not found, export and import errors are errors of the session service")
def kinds_of_error():
    for kind in (errors.SessionNotFoundError, errors.SessionExportError, errors.SessionImportError):
        assert issubclass(kind, errors.SessionServiceError)
