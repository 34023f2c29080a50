"""What an earlier version wrote: data/version_1 was made by runs and commands of 0.1.0, and is never made anew."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cleveragents import AppConfig, CleverAgentsApp, ContextManager, list_contexts
from cleveragents.contexts import describe_contexts
from support.command import command
from support.scripted_llm import says

FROZEN = Path(__file__).with_name("data") / "version_1"
EXPORT = json.loads((FROZEN / "talk.context.json").read_text(encoding="utf-8"))
SESSION = json.loads((FROZEN / "trip.session.json").read_text(encoding="utf-8"))


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def root(home):
    """A copy of all contexts that were there then."""
    return Path(shutil.copytree(FROZEN / "contexts", home / "contexts"))


@pytest.fixture
def talk(root):
    return ContextManager.open("talk", root)


def said(context):
    return [(message.role, message.content) for message in context.messages]


def test_all_contexts_of_then_are_listed(root):
    assert list_contexts(root) == ["empty", "of a session", "talk", "torn"]
    problems = {info.name: info.problem for info in describe_contexts(root) if info.problem}
    assert problems == {"torn": "the last line of messages.jsonl is broken off (33 bytes)"}


def test_the_conversation_of_then_is_read_whole(talk):
    assert said(talk) == [
        ("system", "Be brief."),
        (
            "user",
            [{"type": "text", "text": "What is on it?"}, {"type": "image", "url": "cat.png", "size": [640, 480]}],
        ),
        ("assistant", None),
        ("tool", "a cat\0\u202e \U0001f408"),
        ("assistant", "A cat.\nOr two: {x} %s"),
        ("user", "What do they do?"),
        ("assistant", "Both sleep."),
        ("user", "Who are they?"),
        ("assistant", "They are bro"),
    ]
    parts, asked, found, *_, cut_off = talk.messages[1:]
    assert parts.timestamp == datetime(2026, 3, 1, 12, 0, 1, 123456, tzinfo=UTC)
    assert parts.metadata == {"via": "phone", "deep": {"list": [1, None, True, 2**70, 0.1]}}
    assert [call["id"] for call in asked.metadata["tool_calls"]] == [found.metadata["tool_call_id"]] == ["c1"]
    assert cut_off.metadata == {"interrupted": True}


def test_state_global_context_and_metadata_of_then_are_read(talk):
    assert talk.state == {"step": 2, "done": {"look": True, "tell": None}, "words": ["a", "ä"]}
    assert talk.global_context == {"animals": 2, "deep": {"x": 1}, "asked": 2}
    assert talk.metadata == {"owner": "Zoë", "interrupted_by": "nobody"}
    assert talk.exists()


def test_an_empty_context_of_then_is_still_one_in_which_nothing_was_saved(root):
    assert not ContextManager.open("empty", root).exists()


def test_a_run_carries_on_where_one_of_then_was_broken_off(talk, scripted_llm):
    agent = {"type": "llm", "llm": "openai:any", "base_url": scripted_llm.url}
    count = {"type": "tool", "code": "context['asked'] += 1\nresult = message"}
    routes = {"all": {"from": "input", "through": ["count", "assistant"], "to": "output"}}
    config = AppConfig.model_validate({"agents": {"count": count, "assistant": agent}, "routes": routes})
    scripted_llm.script(says("Brothers."))
    before = talk.messages
    CleverAgentsApp(config).run_sync("Go on.", context=talk)
    prompt = scripted_llm.requests[0]["messages"][-1]["content"]
    assert "Both sleep." in prompt
    assert "They are bro [interrupted]" in prompt
    assert talk.messages[: len(before)] == before
    assert said(talk)[len(before) :] == [("user", "Go on."), ("assistant", "Brothers.")]
    assert talk.global_context == {"animals": 2, "deep": {"x": 1}, "asked": 3}


def test_a_context_of_then_is_changed_key_by_key(talk):
    talk.update_state({"done": {"tell": True}}, removed=["words"])
    assert talk.state == {"step": 2, "done": {"look": True, "tell": True}}
    assert talk.export()["messages"] == EXPORT["messages"]


def test_a_context_of_then_is_exported_as_it_was_then(talk):
    assert talk.export() == EXPORT


def test_an_export_of_then_is_imported_and_exported_again(root):
    imported = ContextManager.import_from(FROZEN / "talk.context.json", root=root, replace=True)
    assert imported.export() == EXPORT
    imported.add_message("user", "Go on.")
    assert imported.messages[:-1] == ContextManager.import_from(FROZEN / "talk.context.json", "again", root).messages


def test_a_torn_line_of_then_is_set_aside_beside_the_one_that_was(root, told):
    torn = ContextManager.open("torn", root, on_damage=told.append)
    torn.add_message("user", "three")
    assert said(torn) == [("user", "one"), ("user", "two"), ("user", "three")]
    assert (torn.directory / "messages.jsonl.damaged").read_bytes().splitlines() == [
        b'{"role":"assistant","content":"half a',
        b'{"role":"assistant","content":"tw',
    ]
    assert len(told) == 1
    assert not torn.damage()


def test_a_session_that_was_made_a_context_then_is_made_a_session_again(root, home):
    imported = command("session", "import", "--from-context", "of a session", home=home)
    assert imported.returncode == 0, imported.stderr
    exported = command("session", "export", "last", "--output", "-", home=home)
    assert exported.returncode == 0, exported.stderr
    session = json.loads(exported.stdout)
    same = ("actor_name", "title", "created_at", "token_usage", "usage_entries", "linked_plans", "tags", "messages")
    # Which the ledger had not then.
    more = {"cached_tokens": 0, "reasoning_tokens": 0}
    entries = [entry | more for entry in SESSION["usage_entries"]]
    assert {key: session[key] for key in same} == {key: SESSION[key] for key in same} | {"usage_entries": entries}
    assert session["metadata"]["mood"] == "sunny"
    back = command("context", "import", "--from-session", "last", "--name", "back", home=home)
    assert back.returncode == 0, back.stderr
    again, then = ContextManager.open("back", root), ContextManager.open("of a session", root)
    assert said(again) == said(then)
    assert again.global_context == then.global_context == {"place": "sea"}
