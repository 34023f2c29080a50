"""Damage is never taken for emptiness: what is readable is shown, what is not is set aside or left as it is."""

import json
import os

import pytest

from cleveragents import ContextManager, list_contexts
from cleveragents.contexts import describe_contexts
from cleveragents.errors import ContextDamagedError, ContextError, ContextNotFoundError


@pytest.fixture
def context(root, told):
    context = ContextManager("talk", root, on_damage=told.append)
    for number in range(6):
        context.add_message("user", f"m{number} ✓")
    context.update_state({"kept": True})
    return context


@pytest.fixture
def messages(context):
    return context.directory / "messages.jsonl"


def contents(context):
    return [message.content for message in context.messages]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def set_aside(context):
    return (context.directory / "messages.jsonl.damaged").read_bytes()


def problem(root, name="talk"):
    return next(info.problem for info in describe_contexts(root) if info.name == name)


@pytest.mark.parametrize("cut", [10, "inside a character"])
def test_c02_a_torn_last_line_costs_only_itself(context, messages, root, told, cut):
    content = messages.read_bytes()
    end = len(content) - 10 if cut == 10 else content.rindex("✓".encode()) + 1
    messages.write_bytes(content[:end])
    assert contents(context) == [f"m{number} ✓" for number in range(5)]
    assert messages.read_bytes() == content[:end], "reading changes nothing"
    assert "broken off" in problem(root)
    again = ContextManager("talk", root, on_damage=told.append)
    told.clear()
    for number in (6, 7):
        again.add_message("user", f"m{number} ✓")
    assert contents(ContextManager("talk", root)) == [f"m{number} ✓" for number in (0, 1, 2, 3, 4, 6, 7)]
    assert set_aside(context) == content[content.rindex(b"\n", 0, -1) + 1 : end] + b"\n"
    assert len(told) == 1
    assert str(context.directory / "messages.jsonl.damaged") in told[0]
    assert problem(root) is None


def test_each_torn_line_is_told_of_once(context, messages, told):
    for number in (1, 2):
        with messages.open("ab") as file:
            file.write(b'{"role": "us')
        assert len(context.messages) == 5 + number
        context.add_message("user", "next")
        assert len(told) == number
        assert "broken off" in told[-1]
        assert str(context.directory / "messages.jsonl.damaged") in told[-1]


def test_a_last_line_that_lacks_only_its_end_is_kept(context, messages, told):
    messages.write_bytes(messages.read_bytes()[:-1])
    assert len(context.messages) == 6
    context.add_message("user", "m6 ✓")
    assert contents(context) == [f"m{number} ✓" for number in range(7)]
    assert not told


def test_every_place_where_the_last_line_can_be_broken(context, messages):
    content = messages.read_bytes()
    start = content.rindex(b"\n", 0, -1) + 1
    for end in range(start, len(content)):
        messages.write_bytes(content[:end])
        expected = 6 if end == len(content) - 1 else 5
        assert len(context.messages) == len(context.last_messages(9)) == expected
        context.add_message("user", "new")
        assert len(context.messages) == expected + 1
        assert all(json.loads(line) for line in messages.read_bytes().splitlines())


def test_a_first_message_that_was_broken_off_leaves_an_empty_conversation(root, told):
    context = ContextManager("new", root, on_damage=told.append)
    (context.directory / "messages.jsonl").write_bytes(b'{"role":"user","content":"he')
    assert context.messages == []
    assert context.exists()
    context.add_message("user", "hello")
    assert contents(context) == ["hello"]
    assert set_aside(context) == b'{"role":"user","content":"he\n'


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"\0" * 512,
        b"[]",
        b'{"role":"user"}',
        b"{}",
        b'{"a":NaN}',
        b"\xff\xfe",
        b'{"role":"user","con',
        b'{"role":"user","timestamp":"2026-01-01T00:00:00Z","content":' + b"[" * 900 + b"]" * 900 + b"}",
    ],
)
def test_a_bad_line_in_the_middle_costs_only_itself(context, messages, told, line):
    lines = messages.read_bytes().split(b"\n")
    damaged = b"\n".join([*lines[:3], line, *lines[3:]])
    messages.write_bytes(damaged)
    assert contents(context) == [f"m{number} ✓" for number in range(6)]
    assert [message.content for message in context.last_messages(5)] == [f"m{number} ✓" for number in range(1, 6)]
    assert len(told) == 1
    context.add_message("user", "m6 ✓")
    assert messages.read_bytes().startswith(damaged)
    assert len(context.repair()) == 1
    assert contents(context) == [f"m{number} ✓" for number in range(7)]
    assert set_aside(context) == line + b"\n"
    told.clear()
    assert len(context.messages) == 7
    assert not told


def test_lines_edited_by_hand_are_read(context, messages, told):
    content = messages.read_text(encoding="utf-8")
    extra = (
        '\n \n{"timestamp":"2026-01-01T01:00:00+01:00","content":"by hand","role":"system","mine":1,"metadata":{}}\n'
    )
    messages.write_text(content.replace("\n", "\r\n") + extra, encoding="utf-8", newline="")
    last = context.last_messages(1)[0]
    assert (last.content, last.timestamp.isoformat()) == ("by hand", "2026-01-01T00:00:00+00:00")
    assert len(context.messages) == 7
    assert not told


WHOLE = {
    "NULs": b"\0" * 4096,
    "an array": b'[{"role":"user","content":"x","timestamp":"2026-01-01T00:00:00Z"}]',
    "another object": b'{"messages": []}',
    "an array and a line end": b"[]\n",
    "text": b"Dear diary,\ntoday\n",
    "spread JSON": b'{\n  "messages": [\n  ]\n}\n',
    "another encoding": '{"role":"user"}\n'.encode("utf-16"),
}


@pytest.mark.parametrize("content", WHOLE.values(), ids=WHOLE)
def test_c04_a_conversation_in_which_nothing_can_be_read_is_an_error_and_is_kept(context, messages, root, content):
    before = (context.directory / "context.json").read_bytes()
    messages.write_bytes(content)
    for call in (
        lambda: context.messages,
        lambda: context.last_messages(3),
        lambda: context.add_message("user", "x"),
        context.clear,
        context.export,
        lambda: context.copy("copy"),
    ):
        with pytest.raises(ContextDamagedError, match=r"messages\.jsonl"):
            call()
    assert messages.read_bytes() == content
    assert (context.directory / "context.json").read_bytes() == before
    assert context.state == {"kept": True}
    assert "messages.jsonl" in problem(root)
    context.repair()
    assert context.messages == []
    assert set_aside(context) == content + b"\n"
    assert context.state == {"kept": True}
    context.add_message("user", "x")


def test_c04_nul_bytes_after_the_last_message_are_set_aside(context, messages, root, told):
    with messages.open("ab") as file:
        file.write(b"\0" * 4096)
    assert len(context.messages) == 6
    assert "4096 bytes" in problem(root)
    assert len(context.export()["messages"]) == 6
    context.add_message("user", "x")
    assert len(context.messages) == 7
    assert set_aside(context) == b"\0" * 4096 + b"\n"
    assert len(told) == 1


def state_file(**changes):
    """A context.json in which all is well, but for ``changes``."""
    fields = {"version": 1, "revision": 0, "created_at": "2026-01-01T00:00:00Z", "state": {}}
    return json.dumps({**fields, "global_context": {}, "metadata": {}, **changes}).encode()


BROKEN_STATES = {
    "cut": b"{",
    "empty": b"",
    "NULs": b"\0" * 512,
    "an array": b"[]",
    "no keys": b"{}",
    "text as state": state_file(state="x"),
    "a negative revision": state_file(revision=-1),
    "a version that is none": state_file(version="1"),
    "no time": state_file(created_at=None),
    "deep": b"[" * 100_000,
    "NaN": state_file(state={"x": float("nan")}),
    "deeper than what is kept": state_file(state={"x": 0}).replace(b"0}", b"[" * 900 + b"]" * 900 + b"}"),
}


def test_a_state_file_made_by_hand_is_read(context):
    (context.directory / "context.json").write_bytes(state_file(state={"by": "hand"}))
    context.reload()
    context.update_state({"and": "us"})
    assert context.state == {"by": "hand", "and": "us"}


@pytest.mark.parametrize("content", BROKEN_STATES.values(), ids=BROKEN_STATES)
def test_c05_a_broken_state_hides_nothing_and_is_kept(context, messages, root, content):
    others = [ContextManager(name, root) for name in ("a", "z")]
    file = context.directory / "context.json"
    file.write_bytes(content)
    conversation = messages.read_bytes()
    held, new = context, ContextManager("talk", root)
    for manager in (held, new):
        for call in (
            lambda manager=manager: manager.state,
            lambda manager=manager: manager.update_state({"x": 1}),
            lambda manager=manager: manager.add_message("user", "x"),
            lambda manager=manager: manager.clear(everything=True),
            lambda manager=manager: manager.save(),
        ):
            with pytest.raises(ContextDamagedError, match=r"context\.json"):
                call()
        assert len(manager.messages) == 6
        assert manager.exists()
    assert file.read_bytes() == content
    assert messages.read_bytes() == conversation
    assert list_contexts(root) == ["a", "talk", "z"]
    assert "context.json" in problem(root)
    assert problem(root, "a") is None
    for other in others:
        other.add_message("user", "x")
    context.delete()
    assert list_contexts(root) == ["a", "z"]


@pytest.mark.parametrize("key", ["version", "revision", "created_at", "state", "global_context", "metadata"])
def test_what_is_wrong_with_a_state_is_told_with_its_key(context, key):
    (context.directory / "context.json").write_bytes(state_file(**{key: "odd"}))
    with pytest.raises(ContextDamagedError, match=rf"context\.json cannot be read: {key}: .*context repair"):
        _ = context.state


def test_repairing_a_broken_state_keeps_it_and_the_conversation(context, root):
    first = context.messages[0].timestamp
    file = context.directory / "context.json"
    file.write_bytes(b"{ broken")
    files = names(context.directory)
    assert len(context.damage()) == 1
    assert names(context.directory) == files, "looking changes nothing"
    assert file.read_bytes() == b"{ broken"
    assert len(context.repair()) == 1
    assert (context.directory / "context.json.damaged").read_bytes() == b"{ broken\n"
    assert context.state == {}
    assert context.created_at == first
    assert len(context.messages) == 6
    assert context.damage() == context.repair() == []
    context.add_message("user", "x")
    assert problem(root) is None


@pytest.mark.parametrize("name", ["messages.jsonl", "context.json"])
def test_a_missing_file_is_damage_that_repair_mends(context, root, name):
    (context.directory / name).unlink()
    new = f"{name} is missing; 'cleveragents context repair' makes a new one"
    for call in (lambda: context.add_message("user", "x"), lambda: (context.state, context.messages)):
        with pytest.raises(ContextDamagedError, match=new):
            call()
    assert problem(root).endswith(new)
    assert not (context.directory / name).exists()
    assert len(context.repair()) == 1
    context.add_message("user", "x")
    assert contents(context)[-1] == "x"


@pytest.mark.parametrize("name", ["messages.jsonl", "context.json"])
def test_something_else_in_the_place_of_a_file_is_damage_not_a_trap(context, root, name):
    path = context.directory / name
    for replace in (path.mkdir, lambda: os.mkfifo(path)):
        path.rmdir() if path.is_dir() else path.unlink()
        replace()
        with pytest.raises(ContextError, match=name):
            _ = context.messages if name == "messages.jsonl" else context.state
        for call in (lambda: context.add_message("user", "x"), context.damage, context.repair):
            with pytest.raises(ContextDamagedError, match=f"{name} is not a regular file; move it away"):
                call()
        assert problem(root)
    context.delete()


def test_a_state_file_of_a_newer_version_is_left_alone(context):
    file = context.directory / "context.json"
    value = json.loads(file.read_text(encoding="utf-8")) | {"version": 2}
    file.write_text(json.dumps(value), encoding="utf-8")
    for call in (
        lambda: context.state,
        lambda: context.update_state({"x": 1}),
        lambda: context.add_message("user", "x"),
    ):
        with pytest.raises(ContextError, match="newer version"):
            call()
    assert json.loads(file.read_text(encoding="utf-8")) == value


def test_what_a_killed_process_left_half_written_is_cleaned_up_and_never_a_context(context, root):
    (context.directory / ".context.json.abc123.tmp").write_bytes(b"{")
    for name in (".new-0123", ".gone-4567"):
        (root / name).mkdir()
        (root / name / "context.json").write_bytes(b"{")
    assert list_contexts(root) == ["talk"]
    context.update_state({"x": 1})
    ContextManager("other", root)
    assert names(context.directory) == ["context.json", "messages.jsonl"]
    assert names(root) == [".locks", "other", "talk"]


def test_clearing_removes_what_was_set_aside_too(context, messages):
    messages.write_bytes(messages.read_bytes()[:-10])
    context.add_message("user", "x")
    assert set_aside(context)
    context.clear()
    assert names(context.directory) == ["context.json", "messages.jsonl"]


def test_deleting_a_linked_context_removes_the_link_alone(context, root, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    context.directory.rename(elsewhere)
    context.directory.symlink_to(elsewhere)
    linked = ContextManager.open("talk", root)
    linked.add_message("user", "through the link")
    assert len(linked.messages) == 7
    linked.delete()
    assert list_contexts(root) == []
    assert names(elsewhere) == ["context.json", "messages.jsonl"]


def test_a_link_that_leads_nowhere_is_listed_as_damaged_and_can_be_deleted(root, tmp_path):
    root.mkdir()
    (root / "lost").symlink_to(tmp_path / "nowhere")
    assert list_contexts(root) == ["lost"]
    assert "context delete" in problem(root, "lost")
    context = ContextManager("lost", root)
    with pytest.raises(ContextDamagedError):
        context.add_message("user", "x")
    assert not (tmp_path / "nowhere").exists()
    context.delete()
    assert list_contexts(root) == []
    with pytest.raises(ContextNotFoundError):
        ContextManager.open("lost", root)
