import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from pytest_bdd import given, parsers, scenarios, then, when

from cleveragents import ContextManager, list_contexts
from cleveragents.errors import ContextNotFoundError

scenarios("context_manager.feature")

# Another process, which knows nothing but the folder and the name.
READ = """
import json, sys
from pathlib import Path
from cleveragents import ContextManager
context = ContextManager.open(sys.argv[2], Path(sys.argv[1]))
print(json.dumps({
    "messages": [[message.role, message.content] for message in context.messages],
    "global_context": context.global_context,
}))
"""


@pytest.fixture
def another_process(tmp_path):
    def read(name):
        done = subprocess.run(
            [sys.executable, "-c", READ, str(tmp_path), name], capture_output=True, check=True, text=True
        )
        return json.loads(done.stdout)

    return read


@when(parsers.parse('the context "{name}" is made'), target_fixture="context")
@given(parsers.parse('the context "{name}"'), target_fixture="context")
def make(tmp_path, name):
    return ContextManager(name, root=tmp_path)


@then("it knows its name")
def knows_name(context):
    assert context.name == "fresh"


@then("there is a folder for it with a file for the conversation and one for the rest")
def files(context, tmp_path):
    assert context.directory == tmp_path / "fresh"
    assert {path.name for path in context.directory.iterdir()} == {"messages.jsonl", "context.json"}


@when(parsers.parse('the {role} says "{text}"'))
def says(context, role, text):
    context.add_message(role, text)


@when("the context is saved")
def save(context):
    context.save()


@then("another process finds both messages in the files")
def found(another_process):
    assert another_process("talk")["messages"] == [
        ["user", "Which way to the station?"],
        ["assistant", "Straight on."],
    ]


@then('a second manager of "talk" has exactly the same messages')
def same_messages(context, tmp_path):
    assert ContextManager("talk", root=tmp_path).messages == context.messages


@when(parsers.parse('"{key}" becomes "{value}" in the global context'))
def share(context, key, value):
    context.update_global_context({key: value})


SHARED = {"writing_stage": "planning", "document_type": "research_paper"}


@then("another process reads both values from the disk")
def shared_elsewhere(another_process):
    assert another_process("talk")["global_context"] == SHARED


@then("both values are there after the manager has read everything anew")
def reloaded(context):
    context.reload()
    assert context.global_context == SHARED


@given(parsers.parse('a state in which "{key}" is "{value}"'))
@when(parsers.parse('the state\'s "{key}" becomes "{value}"'))
def set_state(context, key, value):
    context.update_state({key: value})


@when('the metadata\'s "last_update" becomes the time it is now', target_fixture="now")
def stamp(context):
    now = datetime.now(UTC)
    context.update_metadata({"last_update": now})
    return now


@then('the state says "reviewing" and nothing else')
def moved_on(context, tmp_path):
    assert context.state == ContextManager("talk", root=tmp_path).state == {"current_task": "reviewing"}


@then("the metadata holds that time as text")
def stamped(context, now):
    assert context.metadata == {"last_update": now.isoformat()}


@given(parsers.parse("{count:d} numbered messages in it"))
def numbered(context, count):
    for number in range(1, count + 1):
        context.add_message("user", f"message {number}")


@when("the last 5 messages are asked for", target_fixture="last")
def ask_for_last(context):
    return context.last_messages(5)


@then("they are the messages 6 to 10 in their order")
def newest(last):
    assert [message.content for message in last] == [f"message {number}" for number in range(6, 11)]


@when("the conversation is emptied")
def empty(context):
    context.clear()


@then("there are no messages, for another process neither")
def emptied(context, another_process):
    assert context.messages == another_process("talk")["messages"] == []


@then("the folder has stayed")
def stayed(context):
    assert context.directory.is_dir()


@when("the context is thrown away", target_fixture="held")
def throw_away(context, tmp_path):
    held = ContextManager.open("talk", root=tmp_path)
    context.delete()
    return held


@then("its folder is gone")
def gone(context):
    assert not context.directory.exists()


@then("opening it says that there is no such context")
def not_found(tmp_path):
    with pytest.raises(ContextNotFoundError, match="talk"):
        ContextManager.open("talk", root=tmp_path)
    assert list_contexts(tmp_path) == []


@then("a manager that still held it says that it holds nothing")
def holds_nothing(held):
    assert not held.exists()


@given('the contexts "context3", "context1" and "context2"')
def three(tmp_path):
    for number in (3, 1, 2):
        ContextManager(f"context{number}", root=tmp_path)


@when("the contexts are listed", target_fixture="listed")
def listing(tmp_path):
    return list_contexts(tmp_path)


@then('the list is "context1", "context2", "context3"')
def in_order(listed):
    assert listed == ["context1", "context2", "context3"]


@given("messages, a state, a global context and metadata in it")
def fill(context):
    context.add_message("user", "one", {"k": 1})
    context.add_message("assistant", "two")
    context.update_state({"a": 1})
    context.update_global_context({"b": [2]})
    context.update_metadata({"c": None})


def everything(context):
    return (context.messages, context.state, context.global_context, context.metadata)


@when("it is exported to a file", target_fixture="file")
def export(context, tmp_path):
    context.export_to(tmp_path / "talk.json")
    return tmp_path / "talk.json"


@then("the file holds every part of it")
def complete(context, file):
    document = json.loads(file.read_text(encoding="utf-8"))
    messages, *parts = everything(context)
    assert document["messages"] == [message.as_dict() for message in messages]
    assert [document["state"], document["global_context"], document["metadata"]] == parts


@when('the file is imported under the name "arrived"')
def import_it(file, tmp_path):
    ContextManager.import_from(file, "arrived", root=tmp_path)


@then('the context "arrived" holds the same')
def arrived(context, tmp_path):
    assert everything(ContextManager.open("arrived", root=tmp_path)) == everything(context)


@given("a question of 9 o'clock and an answer of 10 o'clock that carries metadata")
def conversation(context):
    context.add_message("user", "Is it raining?", timestamp=datetime(2026, 5, 1, 9, tzinfo=UTC))
    context.add_message("assistant", "Not yet.", {"source": "window"}, datetime(2026, 5, 1, 10, tzinfo=UTC))


@when("it is shown as text", target_fixture="text")
def as_text(context):
    return context.formatted_history()


@then("each message has its time, its role and what was said, and no metadata is seen")
def plain(text):
    question, answer = text.splitlines()
    assert all(part in question for part in ("2026-05-01 09:00:00 UTC", "user", "Is it raining?"))
    assert all(part in answer for part in ("2026-05-01 10:00:00 UTC", "assistant", "Not yet."))
    assert "window" not in text


@when("it is shown as text with metadata", target_fixture="text")
def as_text_with_metadata(context):
    return context.formatted_history(include_metadata=True)


@then("the answer's metadata is seen as well")
def with_metadata(text):
    assert '"source":"window"' in text


@then("it is said not to exist yet")
def does_not_exist(context):
    assert not context.exists()


@then("it has no messages")
def has_no_messages(context):
    assert context.messages == []
