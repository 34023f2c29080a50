"""What is broken, huge or odd in one context costs only that one; and what a full disk leaves possible."""

import os
import subprocess
import sys

import pytest

from cleveragents import ContextManager, list_contexts
from cleveragents.contexts import describe_contexts, messages_file, search_contexts, state_file
from cleveragents.errors import (
    ContextBusyError,
    ContextDamagedError,
    InvalidNameError,
    InvalidValueError,
    StorageError,
)

FILES = ("messages.jsonl", "context.json")


def huge(path, size):
    """A file of ``size`` bytes that takes no place: NULs without a line end."""
    with path.open("r+b") as file:
        file.truncate(size)


@pytest.fixture
def neighbour(root):
    context = ContextManager("neighbour", root)
    context.add_message("user", "here I am")
    return context


def problems(root):
    return {info.name: info.problem for info in describe_contexts(root)}


@pytest.mark.parametrize("file", FILES)
def test_a_file_of_gigabytes_costs_only_its_own_context(root, context, neighbour, file, told):
    context.add_message("user", "x")
    huge(context.directory / file, 8 * 2**30)
    found = problems(root)
    assert found["neighbour"] is None
    assert "MiB" in found["talk"]
    assert [hit.context for hit in search_contexts("here", root, on_damage=told.append)] == ["neighbour"]
    with pytest.raises(ContextDamagedError, match="64 MiB"):
        ContextManager.open("talk", root).add_message("user", "y")
    ContextManager.open("talk", root).delete()
    assert list_contexts(root) == ["neighbour"]


def test_a_line_that_is_too_long_is_named_and_can_be_set_aside(context, monkeypatch):
    monkeypatch.setattr(messages_file, "MAX_LINE_BYTES", 2**20)
    context.add_message("user", "one")
    path = context.directory / "messages.jsonl"
    size = path.stat().st_size
    huge(path, size + 2**20 + 1)
    for use in (lambda: context.messages, lambda: context.last_messages(1), lambda: context.add_message("user", "x")):
        with pytest.raises(ContextDamagedError, match=f"a line of {path} is longer than 1 MiB; .*context repair"):
            use()
    with path.open("ab") as file:
        file.write(b"\n" + path.read_bytes()[:size])
    assert context.repair() == [
        f"messages.jsonl: 1 of 3 lines cannot be read: they ({2**20 + 1} bytes) moved to messages.jsonl.damaged"
    ]
    assert path.stat().st_size == 2 * size
    assert (context.directory / "messages.jsonl.damaged").stat().st_size == 2**20 + 2
    assert context.add_message("user", "two") == context.last_messages(1)[0]


def test_what_could_not_be_read_again_is_not_stored(context, monkeypatch):
    monkeypatch.setattr(messages_file, "MAX_LINE_BYTES", 2**20)
    monkeypatch.setattr(state_file, "MAX_BYTES", 2**20)
    with pytest.raises(InvalidValueError, match="at most 1 MiB"):
        context.add_message("user", "x" * 2**20)
    with pytest.raises(InvalidValueError, match="at most 1 MiB"):
        context.update_state({"x": "x" * 2**20})
    assert (context.messages, context.state) == ([], {})


def test_a_link_that_leads_to_itself_costs_only_itself(root, neighbour):
    (root / "loop").symlink_to(root / "loop")
    found = problems(root)
    assert found["neighbour"] is None
    assert found["loop"] == f"{root / 'loop'} is a link that leads nowhere; 'cleveragents context delete' removes it"
    ContextManager.open("loop", root).delete()
    assert list_contexts(root) == ["neighbour"]


@pytest.mark.parametrize("file", FILES)
def test_a_link_within_a_context_is_followed_by_no_operation(root, context, file, tmp_path):
    context.add_message("user", "x")
    path, moved = context.directory / file, tmp_path / "moved"
    path.rename(moved)
    content = moved.read_bytes()
    path.symlink_to(moved)
    again = ContextManager.open("talk", root)
    operations = [
        lambda: again.add_message("user", "y"),
        again.export,
        lambda: again.copy("copy"),
        again.clear,
        again.repair,
        lambda: again.messages and again.state,
    ]
    for operation in operations:
        with pytest.raises(ContextDamagedError, match=rf"{path} is a symbolic link, which is not followed"):
            operation()
    assert "is a symbolic link" in problems(root)["talk"]
    again.delete()
    assert moved.read_bytes() == content


def test_nothing_is_set_aside_through_a_link(root, context, tmp_path):
    context.add_message("user", "x")
    path = context.directory / "messages.jsonl"
    (context.directory / "messages.jsonl.damaged").symlink_to(tmp_path / "elsewhere")
    with path.open("ab") as file:
        file.write(b'{"torn')
    before = path.read_bytes()
    for change in (lambda: context.add_message("user", "y"), context.repair):
        with pytest.raises(StorageError, match="symbolic link"):
            change()
    assert path.read_bytes() == before
    assert not (tmp_path / "elsewhere").exists()


FULL = """
import resource, sys
from pathlib import Path
from cleveragents import ContextManager
root = Path(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
ContextManager.open("talk", root).clear()
ContextManager.open("gone", root).delete()
"""


def test_clear_and_delete_work_on_a_full_disk(root, context):
    context.add_message("user", "x")
    context.update_state({"kept": 1})
    ContextManager("gone", root).add_message("user", "x")
    subprocess.run([sys.executable, "-c", FULL, str(root)], check=True)
    assert (context.messages, context.state, list_contexts(root)) == ([], {"kept": 1}, ["talk"])


def test_a_name_that_looks_like_an_option_is_refused(root):
    with pytest.raises(InvalidNameError, match="may not start with '-'"):
        ContextManager("-rf", root)


def test_folders_whose_names_are_none_are_listed_and_marked(root, neighbour):
    for name in ("cafe\u0301", "a:b", "-x", os.fsdecode(b"caf\xe9")):
        (root / name).mkdir()
    found = problems(root)
    assert set(found) == {"neighbour", "cafe\u0301", "a:b", "-x", "caf\ufffd"}
    assert "decomposed Unicode" in found["cafe\u0301"]
    assert all("context rename" in problem for name, problem in found.items() if name != "neighbour")
    assert list_contexts(root) == ["neighbour"]


def test_a_byte_order_mark_is_no_damage_and_utf_16_is_named(root, context, told):
    context.add_message("user", "x")
    context.update_state({"a": 1})
    files = {context.directory / name: (context.directory / name).read_bytes() for name in FILES}
    for path, content in files.items():
        path.write_bytes(b"\xef\xbb\xbf" + content)
    again = ContextManager.open("talk", root, on_damage=told.append)
    assert ([message.content for message in again.messages], again.state, again.damage(), told) == (
        ["x"],
        {"a": 1},
        [],
        [],
    )
    for path, content in files.items():
        path.write_bytes(content.decode().encode("utf-16"))
        with pytest.raises(ContextDamagedError, match=rf"{path}.*UTF-16 text.*save it as UTF-8"):
            _ = again.messages, again.state
        path.write_bytes(content)


def test_a_context_in_use_is_not_replaced(root, context, tmp_path):
    context.add_message("user", "kept")
    context.export_to(tmp_path / "export.json")
    with context.turn(), pytest.raises(ContextBusyError, match="'talk' is in use by a run"):
        ContextManager.import_from(tmp_path / "export.json", root=root, replace=True)
    ContextManager.import_from(tmp_path / "export.json", root=root, replace=True)
