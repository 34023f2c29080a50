"""``cleveragents context export``, ``import`` and ``path``."""

import json

from cleveragents import ContextManager, list_contexts
from support.command import ok, one_line


def test_c17_c64_an_export_has_a_name_of_its_own_in_the_current_folder(run_context, notes, root, tmp_path):
    for name in ("plan.v1", "plan.v2", "a b"):
        ContextManager(name, root).add_message("user", name)
        assert ok(run_context("export", name)) == f"{name}.context.json\n"
        assert json.loads((tmp_path / f"{name}.context.json").read_bytes())["messages"][0]["content"] == name
    assert "exists already" in one_line(run_context("export", "plan.v1"), 1)
    assert ok(run_context("export", "plan.v1", "--force")) == "plan.v1.context.json\n"
    assert json.loads(ok(run_context("export", "notes", "--output", "-")))["name"] == "notes"
    for output in (tmp_path, tmp_path / "no" / "folder.json"):
        one_line(run_context("export", "notes", "--output", output), 1)
    assert ok(run_context("export", "notes", "--output", tmp_path / "x.json")) == f"{tmp_path / 'x.json'}\n"


def test_c22_importing_under_a_taken_name_needs_force(run_context, notes, root, tmp_path):
    ok(run_context("export", "notes"))
    before = ContextManager("other", root)
    before.add_message("user", "theirs")
    line = one_line(run_context("import", "notes.context.json", "--name", "other"), 1)
    assert "'other'" in line
    assert "--force" in line
    assert "--force" not in one_line(run_context("import", "notes.context.json", "--name", "Other"), 1), (
        "it would not help"
    )
    one_line(run_context("import", "notes.context.json"), 1)
    assert len(before.messages) == 1
    ok(run_context("import", "notes.context.json", "--name", "other", "--force"))
    assert ContextManager.open("other", root).messages == notes.messages
    ok(run_context("import", "notes.context.json", "--name", "third"))
    ok(run_context("delete", "notes", "--yes"))
    ok(run_context("import", "notes.context.json"))
    assert list_contexts(root) == ["notes", "other", "third"]
    file = tmp_path / "notes.context.json"
    file.write_bytes(file.read_bytes().replace(b"Hello", b"Hallo"))
    assert "checksum" in one_line(run_context("import", "notes.context.json", "--name", "fourth"), 5)
    assert "nothing.json" in one_line(run_context("import", "nothing.json"), 3)
    assert list_contexts(root) == ["notes", "other", "third"]


def test_the_path_is_the_folder(run_context, notes):
    assert ok(run_context("path", "notes")) == f"{notes.directory}\n"


def test_an_export_is_imported_from_standard_input(run_context, notes, root):
    document = ok(run_context("export", "notes", "--output", "-"))
    ok(run_context("import", "-", "--name", "piped", stdin=document))
    assert ContextManager.open("piped", root).messages == notes.messages
    assert "standard input is not an export" in one_line(run_context("import", "-", stdin=b"\x00"), 5)
