"""Two names never share a place, and no name leads out of it."""

import os
import unicodedata
from pathlib import Path

import pytest

from cleveragents import ContextManager, list_contexts
from cleveragents.errors import ContextExistsError, ContextNotFoundError, InvalidNameError


def made(root, names):
    """The contexts of those names that are accepted, each with its name as its only message."""
    contexts = {}
    for name in names:
        try:
            contexts[name] = ContextManager(name, root)
        except InvalidNameError:
            continue
        contexts[name].add_message("user", name)
    return contexts


def test_c16_names_that_look_alike_are_different_contexts_or_refused(root):
    contexts = made(root, ["team:a", "team_a", "team a", "team-a", "team.a", "teama"])
    assert list(contexts) == ["team_a", "team a", "team-a", "team.a", "teama"]
    contexts.pop("team_a").delete()
    assert list_contexts(root) == sorted(contexts)
    for name in contexts:
        assert [message.content for message in ContextManager.open(name, root).messages] == [name]


def test_c17_what_follows_a_dot_belongs_to_the_name(root):
    names = ["notes.json", "plan.v1", "plan.v2"]
    made(root, names)
    assert list_contexts(root) == names
    assert [ContextManager.open(name, root).messages[0].content for name in names] == names


def test_c19_a_name_that_differs_only_by_case_is_refused_on_every_file_system(root):
    ContextManager("Alpha", root).add_message("user", "Alpha")
    ContextManager("Straße", root)
    for name in ("alpha", "ALPHA", "STRASSE"):
        with pytest.raises(ContextExistsError, match=r"would be the same .* where case is ignored"):
            ContextManager(name, root)
    assert list_contexts(root) == ["Alpha", "Straße"]
    assert ContextManager("Alpha", root).messages[0].content == "Alpha"


@pytest.fixture
def case_ignored(monkeypatch):
    """A file system on which a name finds its file whatever the case, as far as looking a name up goes."""

    def ignoring_case(look):
        def looked(path, *arguments, **options):
            try:
                return look(path, *arguments, **options)
            except FileNotFoundError:
                for other in Path(path).parent.iterdir():
                    if other.name.casefold() == Path(path).name.casefold():
                        return look(other, *arguments, **options)
                raise

        return looked

    monkeypatch.setattr(os, "stat", ignoring_case(os.stat))
    monkeypatch.setattr(os, "lstat", ignoring_case(os.lstat))


def test_c19_where_the_file_system_ignores_case_another_case_is_still_another_name(root, case_ignored):
    ContextManager("Alpha", root).add_message("user", "Alpha")
    assert (root / "ALPHA").is_dir()
    with pytest.raises(ContextExistsError, match="case"):
        ContextManager("alpha", root)
    with pytest.raises(ContextNotFoundError):
        ContextManager.open("alpha", root)
    assert ContextManager("Alpha", root).messages[0].content == "Alpha"
    assert list_contexts(root) == ["Alpha"]


def test_c20_no_stored_name_is_one_that_windows_reserves(root):
    refused = ["con", "NUL", "aux.notes", "com1", "report.", "report ", "what?"]
    assert made(root, refused) == {}
    assert not root.exists()


def test_a_name_in_any_script_is_the_same_composed_or_not(root):
    names = ["สวัสดี", "日本語 メモ", "Привет", "é"]
    made(root, names)
    assert list_contexts(root) == sorted(names)
    decomposed = unicodedata.normalize("NFD", "é")
    assert decomposed != "é"
    assert ContextManager(decomposed, root).name == "é"
    assert len(list_contexts(root)) == 4


def test_the_longest_name_works_everywhere(root, tmp_path):
    context = ContextManager("ä" * 100, root)
    context.add_message("user", "x")
    with context.turn():
        context.update_state({"a": 1})
    context.export_to(tmp_path / "export.json")
    context.rename("b" * 200)
    context.copy("c" * 200).delete()
    assert list_contexts(root) == ["b" * 200]


def test_a_store_on_a_link_is_one_store(root, tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    root.symlink_to(real)
    ContextManager("talk", root).add_message("user", "x")
    assert len(ContextManager.open("talk", real).messages) == 1
    assert list_contexts(root) == ["talk"]


def test_a_name_is_utf_8_on_disk_whatever_the_locale(root):
    ContextManager("Привет", root)
    assert "Привет".encode() in [os.fsencode(path.name) for path in root.iterdir()]
