"""A context as a whole: made, changed, cleared, deleted, renamed, copied, listed, through one manager or several."""

import logging
import os

import pytest

from cleveragents import ContextManager, list_contexts
from cleveragents.errors import (
    ContextBusyError,
    ContextExistsError,
    ContextNotFoundError,
    InvalidInputError,
    InvalidNameError,
    InvalidSettingError,
    InvalidValueError,
    StorageError,
)


def contents(context):
    return [message.content for message in context.messages]


def test_a_new_context_has_its_two_files_and_nothing_saved(context, root):
    assert context.name == "talk"
    assert context.directory == root / "talk"
    assert sorted(path.name for path in context.directory.iterdir()) == ["context.json", "messages.jsonl"]
    assert not context.exists()
    assert (context.messages, context.state, context.global_context, context.metadata) == ([], {}, {}, {})


@pytest.mark.parametrize("change", ["add_message", "update_state", "update_global_context", "update_metadata", "clear"])
def test_after_any_first_change_it_exists_for_good(context, root, change):
    arguments = {"add_message": ("user", "x"), "clear": ()}.get(change, ({"x": 1},))
    getattr(context, change)(*arguments)
    assert context.exists()
    context.clear(everything=True)
    assert context.exists()
    assert ContextManager.open("talk", root).exists()


def test_saving_and_looking_are_no_changes(context):
    context.save()
    context.reload()
    context.update_state({})
    assert context.formatted_history() == ""
    assert not context.exists()


@pytest.mark.parametrize("section", ["state", "global_context", "metadata"])
def test_updates_merge_per_key_and_nested_key(context, root, section):
    update = getattr(context, f"update_{section}")
    update({"a": 1, "deep": {"x": 1, "y": {"z": 1}}})
    update({"b": None, "deep": {"y": {"w": 2}}}, removed=["a", ("deep", "x"), ("not", "there")])
    again = ContextManager.open("talk", root)
    assert getattr(again, section) == {"b": None, "deep": {"y": {"z": 1, "w": 2}}}
    others = {"state", "global_context", "metadata"} - {section}
    assert all(getattr(again, other) == {} for other in others)


@pytest.mark.parametrize("removed", [[()], [1], [("a", 1)], [None], "key"])
def test_a_removal_that_is_no_key_is_refused(context, removed):
    with pytest.raises(InvalidInputError):
        context.update_state({"a": 1}, removed=removed)
    assert context.state == {}


@pytest.mark.parametrize("changes", [[1], "text", 3, {"a": object()}])
def test_changes_that_are_no_mapping_of_values_are_refused(context, changes):
    with pytest.raises(InvalidValueError):
        context.update_state(changes)
    assert not context.exists()


def test_two_managers_see_each_others_changes_at_once(context, root):
    other = ContextManager("talk", root)
    context.add_message("user", "one")
    other.add_message("user", "two")
    context.update_state({"a": {"x": 1}})
    other.update_state({"a": {"y": 2}})
    context.save()
    for manager in (context, other):
        assert contents(manager) == ["one", "two"]
        assert manager.state == {"a": {"x": 1, "y": 2}}


def test_clearing_empties_the_conversation_and_keeps_the_rest(context):
    context.add_message("user", "x")
    context.update_state({"a": 1})
    context.update_global_context({"b": 1})
    context.update_metadata({"c": 1})
    context.clear()
    assert context.messages == []
    assert (context.state, context.global_context, context.metadata) == ({"a": 1}, {"b": 1}, {"c": 1})
    context.clear(everything=True)
    assert (context.state, context.global_context, context.metadata) == ({}, {}, {})
    assert context.directory.is_dir()


def test_c83_a_deleted_context_is_gone_with_its_locks_and_never_comes_back_by_itself(context, root):
    held = ContextManager.open("talk", root)
    context.add_message("user", "x")
    context.delete()
    assert not (root / "talk").exists()
    assert not held.exists()
    for call in (
        lambda: ContextManager.open("talk", root),
        lambda: held.add_message("user", "y"),
        lambda: held.update_state({"a": 1}),
        held.clear,
        held.save,
        held.reload,
        lambda: held.messages,
        lambda: held.state,
        held.delete,
        lambda: held.turn().__enter__(),
        lambda: context.add_message("user", "z"),
    ):
        with pytest.raises(ContextNotFoundError):
            call()
    assert list_contexts(root) == []
    assert [path.name for path in root.iterdir()] == [".locks"]
    assert [path.name for path in (root / ".locks").iterdir()] == ["~"]


def test_c82_c83_contexts_that_are_deleted_leave_nothing_to_those_made_anew(root, tmp_path):
    for number in range(20):
        context = ContextManager(f"n{number}", root)
        context.add_message("user", f"old {number}")
        context.update_state({"old": number})
        with context.turn():
            context.export_to(tmp_path / f"{number}.json")
        context.delete()
    assert [path.name for path in root.iterdir()] == [".locks"]
    assert [path.name for path in (root / ".locks").iterdir()] == ["~"]
    empty = ContextManager("n0", root)
    assert (empty.messages, empty.state, empty.exists()) == ([], {}, False)
    again = ContextManager.import_from(tmp_path / "1.json", "n1", root)
    assert (contents(again), again.state) == (["old 1"], {"old": 1})


def test_a_manager_of_a_deleted_context_keeps_away_from_a_new_one_of_that_name(context, root):
    held = ContextManager.open("talk", root)
    context.delete()
    ContextManager("talk", root).add_message("user", "new")
    for call in (lambda: held.add_message("user", "old"), lambda: held.update_state({"old": 1}), lambda: held.messages):
        with pytest.raises(ContextNotFoundError, match="deleted or replaced"):
            call()
    with pytest.raises(ContextNotFoundError):
        held.delete()
    held.reload()
    assert contents(held) == ["new"]


def test_a_new_context_is_told_from_a_deleted_one_even_if_their_files_are_of_one_size_and_time(root):
    for _ in range(20):
        held = ContextManager("talk", root)
        held.add_message("user", "old")
        file = held.directory / "context.json"
        before = file.stat()
        ContextManager.open("talk", root).delete()
        ContextManager("talk", root)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert file.stat().st_size == before.st_size
        with pytest.raises(ContextNotFoundError):
            held.add_message("user", "more of the old")
        ContextManager.open("talk", root).delete()


def test_opening_what_is_not_there_makes_nothing(root):
    with pytest.raises(ContextNotFoundError, match="'typo'"):
        ContextManager.open("typo", root)
    assert not root.exists()


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "", " ", "con", "a" * 300, ".hidden", "x~", "a\0b", "a\nb", "/x", 3, None]
)
def test_a_bad_name_is_refused_before_anything_is_touched(root, name):
    for call in (ContextManager, ContextManager.open):
        with pytest.raises(InvalidNameError):
            call(name, root)
    assert not root.exists()


def test_renaming_moves_everything_and_leaves_nothing(context, root):
    held = ContextManager.open("talk", root)
    context.add_message("user", "x")
    with context.turn():
        pass
    context.rename("speech")
    assert context.name == "speech"
    assert contents(context) == ["x"]
    context.add_message("user", "y")
    assert list_contexts(root) == ["speech"]
    assert not [path for path in (root / ".locks").iterdir() if path.name.startswith("talk")]
    with pytest.raises(ContextNotFoundError):
        held.add_message("user", "z")


def test_renaming_to_a_taken_or_bad_name_changes_nothing(context, root):
    ContextManager("other", root).add_message("user", "theirs")
    context.add_message("user", "mine")
    with pytest.raises(ContextExistsError):
        context.rename("other")
    with pytest.raises(ContextExistsError):
        context.rename("OTHER")
    with pytest.raises(InvalidNameError):
        context.rename("../other")
    assert contents(ContextManager.open("talk", root)) == ["mine"]
    assert contents(ContextManager.open("other", root)) == ["theirs"]


def test_a_name_can_be_given_another_case(context, root):
    context.rename("Talk")
    assert list_contexts(root) == ["Talk"]


def test_a_copy_is_a_context_of_its_own(context, root):
    context.add_message("user", [{"text": "x"}], {"k": 1})
    context.update_state({"a": 1})
    copy = context.copy("copy")
    assert copy.messages == context.messages
    assert copy.state == {"a": 1}
    copy.add_message("user", "only here")
    copy.update_state({"a": 2})
    assert len(context.messages) == 1
    assert context.state == {"a": 1}
    with pytest.raises(ContextExistsError):
        context.copy("copy")


def test_one_turn_at_a_time_even_within_a_process(context, root):
    other = ContextManager.open("talk", root)
    with context.turn():
        with pytest.raises(ContextBusyError, match=r"'talk'.*--wait"), other.turn(wait=0):
            pass
        with pytest.raises(ContextBusyError):
            other.rename("elsewhere")
        context.add_message("user", "writing goes on")
        other.update_state({"by": "others too"})
    with other.turn(wait=0):
        pass


@pytest.mark.parametrize("wait", [-1, float("nan"), float("inf"), "5", None, True])
def test_an_odd_time_to_wait_is_refused(context, wait):
    with pytest.raises(InvalidSettingError), context.turn(wait=wait):
        pass


def test_contexts_are_listed_sorted_and_only_they(root):
    assert list_contexts(root) == []
    for name in ("b", "a", "ä", "B2"):
        ContextManager(name, root)
    (root / "a file").write_text("", encoding="utf-8")
    (root / ".hidden").mkdir()
    (root / "no~name").mkdir()
    assert list_contexts(root) == ["B2", "a", "b", "ä"]


def test_an_empty_folder_made_by_hand_becomes_a_context(root):
    (root / "talk").mkdir(parents=True)
    ContextManager("talk", root).add_message("user", "x")
    assert contents(ContextManager.open("talk", root)) == ["x"]


def test_a_file_in_the_place_of_a_context_is_kept(root):
    root.mkdir()
    (root / "talk").write_text("mine", encoding="utf-8")
    with pytest.raises(StorageError, match="not a folder"):
        ContextManager("talk", root)
    assert (root / "talk").read_text(encoding="utf-8") == "mine"


def test_without_a_listener_damage_is_logged_once(context, caplog):
    context.add_message("user", "x")
    with (context.directory / "messages.jsonl").open("ab") as file:
        file.write(b'{"role": "us')
    with caplog.at_level(logging.WARNING):
        assert len(context.messages) == len(context.messages) == 1
    assert len(caplog.records) == 1
    assert "'talk'" in caplog.text
