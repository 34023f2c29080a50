"""The export file: everything in it, nothing lost on the way back, and refused when it was changed."""

import ctypes
import errno
import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cleveragents import ContextManager, list_contexts
from cleveragents.disk.export_file import export_bytes
from cleveragents.errors import (
    ContextExistsError,
    ContextImportError,
    InvalidNameError,
    InvalidValueError,
    StorageError,
)
from cleveragents.values.canonical import checksum
from cleveragents.values.json import MAX_DEPTH


@pytest.fixture
def context(context):
    context.add_message("system", "Be brief.")
    context.add_message("user", [{"text": "?"}, {"image": "data:"}], {"deep": {"x": [1.5, None, 2**60]}})
    context.add_message("assistant", None, {"tool_calls": [{"id": "c1"}]})
    context.update_state({"cost": 6.0, "small": 0.00001, "sum": 0.1 + 0.2, "big": 2**60, "e\u0301": []})
    context.update_global_context({"stage": "planning", "nothing": None})
    context.update_metadata({"made": "by hand"})
    return context


@pytest.fixture
def file(context, tmp_path):
    context.export_to(tmp_path / "export.json")
    return tmp_path / "export.json"


def everything(context):
    return (context.messages, context.state, context.global_context, context.metadata, context.created_at)


def changed(file, change):
    """Change the document, and give it the checksum that belongs to what it says then."""
    document = json.loads(file.read_bytes())
    change(document)
    document.pop("checksum", None)
    document["checksum"] = checksum(document)
    file.write_bytes(json.dumps(document).encode())


def test_what_is_imported_is_what_was_exported(context, file, root):
    copy = ContextManager.import_from(file, "copy", root)
    assert everything(copy) == everything(context)
    assert copy.exists()
    copy.update_state({"only": "here"})
    assert "only" not in context.state


def test_c56_c62_exported_imported_and_exported_five_times_it_is_the_same(context, file, root, tmp_path):
    first = context.export()
    for number in range(5):
        again = ContextManager.import_from(file, "talk", root, replace=True)
        file = tmp_path / f"export-{number}.json"
        again.export_to(file)
        assert json.loads(file.read_bytes()) == first


def test_an_empty_context_can_be_exported_and_imported(root, tmp_path):
    ContextManager("empty", root).export_to(tmp_path / "x.json")
    again = ContextManager.import_from(tmp_path / "x.json", "again", root)
    assert again.messages == []
    assert again.exists()


def test_c61_white_space_key_order_and_line_ends_do_not_matter_but_a_digit_does(context, file, root):
    document = json.loads(file.read_bytes())
    text = json.dumps(dict(reversed(document.items())), indent=7, ensure_ascii=True).replace("\n", "\r\n")
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert everything(ContextManager.import_from(file, "one", root)) == everything(context)
    file.write_bytes(text.replace("0.30000000000000004", "0.30000000000000005").encode())
    ContextManager.import_from(file, "two", root)
    file.write_bytes(text.replace("0.30000000000000004", "0.3").encode())
    with pytest.raises(ContextImportError, match="checksum"):
        ContextManager.import_from(file, "three", root)


def test_any_byte_that_is_changed_in_a_text_or_number_is_noticed(context, file, root):
    content = file.read_bytes()
    names = 0
    for old, new in [
        (b"Be brief.", b"Be brieF."),
        (b'"planning"', b'"Planning"'),
        (b"1.5", b"1.6"),
        (b'"system"', b'"user"'),
    ]:
        assert old in content
        file.write_bytes(content.replace(old, new))
        with pytest.raises(ContextImportError, match="checksum"):
            ContextManager.import_from(file, f"n{names}", root)
    assert list_contexts(root) == ["talk"]


ODD = {
    "no version": lambda d: d.pop("version"),
    "newer version": lambda d: d.update(version=2),
    "version as text": lambda d: d.update(version="1"),
    "version as a float": lambda d: d.update(version=1.0),
    "version true": lambda d: d.update(version=True),
    "negative version": lambda d: d.update(version=-1),
    "another format": lambda d: d.update(format="cleveragents.session"),
    "no messages": lambda d: d.pop("messages"),
    "messages no list": lambda d: d.update(messages={}),
    "a message that is none": lambda d: d["messages"].append([]),
    "an unknown role": lambda d: d["messages"][2].update(role="robot"),
    "no content": lambda d: d["messages"][0].pop("content"),
    "content a number": lambda d: d["messages"][0].update(content=3),
    "a time without a zone": lambda d: d["messages"][0].update(timestamp="2026-01-01T00:00:00"),
    "no time": lambda d: d["messages"][0].update(timestamp=""),
    "metadata no object": lambda d: d["messages"][0].update(metadata=[]),
    "state no object": lambda d: d.update(state=[]),
    "an unknown key": lambda d: d.update(extra=1),
    "a bad creation time": lambda d: d.update(created_at="yesterday"),
    "a name that is no text": lambda d: d.update(name=None),
}


@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
def test_c58_c65_what_is_malformed_is_refused_by_name_and_nothing_is_made(file, root, change):
    changed(file, change)
    with pytest.raises(ContextImportError) as caught:
        ContextManager.import_from(file, "new", root)
    assert str(file) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert list_contexts(root) == ["talk"]


def test_the_error_names_the_field(file, root):
    changed(file, ODD["an unknown role"])
    with pytest.raises(ContextImportError, match=r"messages\[2\]\.role"):
        ContextManager.import_from(file, "new", root)
    changed(file, ODD["newer version"])
    with pytest.raises(ContextImportError, match="newer version"):
        ContextManager.import_from(file, "new", root)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"null", b"[]", b"\xff\xfe", b"\0" * 100, b'{"format": NaN}', b"[" * 100_000, b'{"a":' * 100_000],
    ids=lambda content: repr(content[:10]),
)
def test_what_is_no_export_is_refused(file, root, content):
    file.write_bytes(content)
    with pytest.raises(ContextImportError):
        ContextManager.import_from(file, "new", root)
    assert list_contexts(root) == ["talk"]


def test_a_truncated_file_is_refused_wherever_it_ends(file, root):
    content = file.read_bytes()
    for end in range(0, len(content) - 2, 97):
        file.write_bytes(content[:end])
        with pytest.raises(ContextImportError):
            ContextManager.import_from(file, "new", root)


def test_a_file_that_the_disk_has_no_room_for_is_refused(file, root, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=file.stat().st_size - 1))
    with pytest.raises(ContextImportError, match="larger than the disk has room for"):
        ContextManager.import_from(file, "new", root)
    assert list_contexts(root) == ["talk"]


def test_a_file_of_more_than_the_wanted_size_is_refused(file, root):
    size = file.stat().st_size
    with pytest.raises(ContextImportError, match=rf"larger than was allowed \({size - 1:,} bytes\)"):
        ContextManager.import_from(file, "new", root, max_size=size - 1)
    assert list_contexts(root) == ["talk"]
    assert ContextManager.import_from(file, "new", root, max_size=size).name == "new"


def test_the_order_of_keys_and_the_layout_do_not_matter_and_a_key_comes_once(file, context, root):
    document = json.loads(file.read_bytes())
    for keys in (
        sorted(document),
        sorted(document, reverse=True),
        ["messages", *sorted(document.keys() - {"messages"})],
    ):
        file.write_bytes(json.dumps({key: document[key] for key in keys}).encode())
        copy = ContextManager.import_from(file, "copy", root, replace=True)
        assert everything(copy) == everything(context)
    for twice in ('"name": "talk"', '"state": {"a": 1, "a": 2}', '"messages": []'):
        file.write_text(json.dumps(document | {"state": {}})[:-1] + f", {twice}}}", encoding="utf-8")
        with pytest.raises(ContextImportError, match="comes twice"):
            ContextManager.import_from(file, "new", root)


def test_an_export_in_pieces_is_the_document_laid_out(context, root, file):
    for one in (context, ContextManager("empty", root)):
        assert b"".join(one.export_pieces()) == export_bytes(one.export())
    assert file.read_bytes() == export_bytes(context.export())


def test_a_name_inside_a_file_never_becomes_a_path(file, root, tmp_path):
    for name in ("../../outside", "/outside", "con", "", ".hidden"):
        changed(file, lambda document, name=name: document.update(name=name))
        with pytest.raises(InvalidNameError):
            ContextManager.import_from(file, root=root)
        assert ContextManager.import_from(file, "good", root).name == "good"
        ContextManager.open("good", root).delete()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["contexts", "export.json"]


def test_c22_a_taken_name_is_kept_unless_it_shall_be_replaced_and_then_it_is_exactly_the_import(context, file, root):
    other = ContextManager("other", root)
    other.add_message("user", "theirs")
    other.update_state({"theirs": True})
    before = everything(other)
    for name in ("other", "Other"):
        with pytest.raises(ContextExistsError):
            ContextManager.import_from(file, name, root)
    with pytest.raises(ContextExistsError):
        ContextManager.import_from(file, "Other", root, replace=True)
    assert everything(other) == before
    assert everything(ContextManager.import_from(file, "other", root, replace=True)) == everything(context)
    assert list_contexts(root) == ["other", "talk"]
    assert sorted(path.name for path in root.iterdir()) == [".locks", "other", "talk"]


@pytest.fixture
def no_exchange(monkeypatch):
    """A system that cannot swap two names in one step."""
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())


def test_replacing_works_where_names_cannot_be_swapped_in_one_step(context, file, root, no_exchange):
    other = ContextManager("other", root)
    other.add_message("user", "theirs")
    assert everything(ContextManager.import_from(file, "other", root, replace=True)) == everything(context)
    assert sorted(path.name for path in root.iterdir()) == [".locks", "other", "talk"]


def test_killed_between_the_two_steps_of_a_swap_the_old_context_comes_back(context, root):
    before = everything(context)
    context.directory.rename(root / ".old-talk")
    (root / ".new-0123").mkdir()
    ContextManager("other", root)
    assert everything(ContextManager.open("talk", root)) == before
    # Killed after them, the old one is what is left over.
    (root / ".old-talk").mkdir()
    ContextManager("third", root)
    assert sorted(path.name for path in root.iterdir()) == [".locks", "other", "talk", "third"]


KILLED = """
import ctypes, os, sys
from pathlib import Path
from cleveragents import ContextManager
ctypes.CDLL = lambda *_, **__: object()
real = Path.rename
def rename(path, target):
    real(path, target)
    if path.name == "talk":
        os._exit(9)
Path.rename = rename
ContextManager.import_from(Path(sys.argv[2]), "talk", Path(sys.argv[1]), replace=True)
"""


def test_a_process_really_killed_between_the_two_steps_costs_nothing(context, root, tmp_path):
    ContextManager("theirs", root).export_to(tmp_path / "theirs.json")
    before = everything(context)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(root), str(tmp_path / "theirs.json")],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 9, done.stderr
    assert list_contexts(root) == ["theirs"], "killed at the moment without the context"
    ContextManager("other", root)
    assert everything(ContextManager.open("talk", root)) == before
    assert sorted(path.name for path in root.iterdir()) == [".locks", "other", "talk", "theirs"]


def test_a_second_step_that_fails_leaves_the_old_context(context, file, root, no_exchange, monkeypatch):
    before, real = everything(context), Path.rename

    def rename(path, target):
        if path.name.startswith(".new-"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(StorageError, match="Input/output error"):
        ContextManager.import_from(file, "talk", root, replace=True)
    assert everything(ContextManager.open("talk", root)) == before
    assert sorted(path.name for path in root.iterdir()) == [".locks", "talk"]


def nested(levels):
    value: list[object] = []
    for _ in range(levels):
        value = [value]
    return value


def test_whatever_is_accepted_however_deep_can_be_copied_exported_and_imported(context, root, tmp_path):
    refused = 0
    for levels in range(MAX_DEPTH - 4, MAX_DEPTH + 2):
        value = nested(levels)
        for keep in (
            lambda value=value: context.add_message("user", value),
            lambda value=value: context.add_message("user", "x", {"deep": value}),
            lambda value=value, key=f"k{levels}": context.update_state({key: value}),
            lambda value=value, key=f"k{levels}": context.update_metadata({key: {"x": value}}),
        ):
            try:
                keep()
            except InvalidValueError:
                refused += 1
    assert refused == 1 + 2 + 2 + 3, "the deepest are kept, and one level more is refused"
    again = ContextManager.open("talk", root)
    assert everything(again) == everything(again.copy("copy"))
    assert again.damage() == []
    again.export_to(tmp_path / "deep.json")
    made = ContextManager.import_from(tmp_path / "deep.json", "made", root)
    assert everything(made) == everything(again)


def test_an_import_that_is_deeper_than_what_is_kept_is_refused(context, file, root):
    for change in (
        lambda document: document["state"].update(x=nested(MAX_DEPTH)),
        lambda document: document["messages"][1].update(content=nested(MAX_DEPTH + 1)),
    ):
        before = file.read_bytes()
        changed(file, change)
        with pytest.raises(ContextImportError, match="nested deeper than 200 levels"):
            ContextManager.import_from(file, "new", root)
        file.write_bytes(before)
    assert list_contexts(root) == ["talk"]


def test_replacing_a_damaged_context_works(context, file, root):
    (context.directory / "context.json").write_bytes(b"{")
    ContextManager.import_from(file, "talk", root, replace=True)
    assert ContextManager.open("talk", root).state["cost"] == 6.0


def test_c22_an_existing_file_is_kept_unless_it_shall_be_overwritten(context, tmp_path):
    file = tmp_path / "mine.txt"
    file.write_text("mine", encoding="utf-8")
    with pytest.raises(StorageError, match="exists already"):
        context.export_to(file)
    assert file.read_text(encoding="utf-8") == "mine"
    context.export_to(file, overwrite=True)
    assert json.loads(file.read_bytes())["name"] == "talk"


def test_c64_an_export_goes_only_where_a_file_can_be(context, tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "folder", tmp_path / "not" / "there.json", tmp_path / "pipe", "/dev/null"):
        for overwrite in (False, True):
            with pytest.raises(StorageError):
                context.export_to(path, overwrite=overwrite)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert not list((tmp_path / "folder").iterdir())


def test_an_export_over_a_link_replaces_what_it_leads_to(context, tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("old", encoding="utf-8")
    link.symlink_to(target)
    context.export_to(link, overwrite=True)
    assert link.is_symlink()
    assert json.loads(target.read_bytes())["name"] == "talk"


def test_importing_what_is_not_there_is_one_clear_error(root, tmp_path):
    for path in (tmp_path / "nothing.json", tmp_path):
        with pytest.raises(StorageError, match="cannot read"):
            ContextManager.import_from(path, "new", root)
    assert not root.exists()
