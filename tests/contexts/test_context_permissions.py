"""Who may read what is kept, and what happens where little is allowed. In children without privileges."""

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cleveragents import ContextManager, list_contexts
from support.command import environment

# A user without privileges may not be able to read the interpreter's own modules: all of them are loaded first.
WITHOUT_PRIVILEGES = """
import os, sys, tempfile
from pathlib import Path
import platformdirs
import cleveragents.cli.context, cleveragents.cli.main
from cleveragents import ContextManager
from cleveragents.contexts import describe_contexts, search_contexts
with tempfile.TemporaryDirectory() as name:
    context = ContextManager("warm", Path(name) / "contexts")
    context.add_message("user", "x")
    with context.turn():
        context.update_state({"a": 1})
    context.export_to(Path(name) / "export.json")
    ContextManager.import_from(Path(name) / "export.json", "other", Path(name) / "contexts", replace=True)
    ContextManager.import_from(Path(name) / "export.json", "other", Path(name) / "contexts", replace=True)
    describe_contexts(Path(name) / "contexts"), list(search_contexts("x", Path(name) / "contexts"))
    context.repair()
    context.delete()
user = int(sys.argv.pop(1))
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
"""
COMMAND_LINE = "from cleveragents.cli.main import main\nmain()"
NOBODY, UNKNOWN = 65534, 54321


@pytest.fixture
def folder():
    """A folder that belongs to a user without privileges."""
    with tempfile.TemporaryDirectory(prefix="unprivileged") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        yield folder
        # What a test made unreadable has to be removable.
        for path in [folder, *folder.rglob("*")]:
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)


@pytest.fixture
def run(folder):
    """Run a program, or the command line, as a user without privileges in the folder that belongs to it."""

    def running(*arguments, program=COMMAND_LINE, env=None, user=NOBODY, code=0):
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_PRIVILEGES + program, str(user), *arguments],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            env=environment(folder / "home") if env is None else env,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return running


MAKE = """
import sys
from cleveragents import ContextManager
for name in sys.argv[1:]:
    context = ContextManager(name)
    context.add_message("user", f"in {name}")
    context.update_state({"a": 1})
"""


def test_c76_only_the_owner_can_read_what_is_made_whatever_the_umask(root, tmp_path):
    for umask in (0o022, 0o000, 0o777):
        before = os.umask(umask)
        try:
            name = f"u{umask}"
            context = ContextManager(name, root)
            context.add_message("user", "x")
            context.update_state({"a": 1})
            with context.turn():
                context.export_to(tmp_path / f"{name}.json")
            with (context.directory / "messages.jsonl").open("ab") as file:
                file.write(b"{torn")
            ContextManager(name, root, on_damage=str).add_message("user", "y")
            context.copy(f"copy-{name}")
        finally:
            os.umask(before)
    assert (root / "u18" / "messages.jsonl.damaged").exists()
    for path in [*tmp_path.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_c76_a_mode_that_the_user_chose_is_kept(root, tmp_path):
    context = ContextManager("talk", root)
    context.export_to(tmp_path / "export.json")
    files = [context.directory / "context.json", context.directory / "messages.jsonl", tmp_path / "export.json"]
    for path in files:
        path.chmod(0o640)
    root.chmod(0o750)
    context.directory.chmod(0o750)
    context.add_message("user", "x")
    context.update_state({"a": 1})
    context.clear()
    context.export_to(tmp_path / "export.json", overwrite=True)
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o640}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (root, context.directory)} == {0o750}


def test_c73_a_read_only_home_breaks_only_what_must_write(run, folder):
    home = folder / "home"
    run("talk", program=MAKE)
    exported = run("context", "export", "talk", "--output", "-").stdout
    (folder / "export.json").write_text(exported, encoding="utf-8")
    (folder / "export.json").chmod(0o644)
    for path in [home, *home.rglob("*")]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    folder.chmod(0o555)
    assert "in talk" in run("context", "show", "talk").stdout
    assert "talk" in run("context", "list").stdout
    assert "in talk" in run("context", "search", "TALK").stdout
    assert run("context", "export", "talk", "--output", "-").stdout == exported
    for arguments in (
        ["context", "clear", "talk", "--yes"],
        ["context", "delete", "talk", "--yes"],
        ["context", "rename", "talk", "new"],
        ["context", "copy", "talk", "new"],
        ["context", "import", "export.json", "--name", "new"],
    ):
        error = run(*arguments, code=1).stderr
        assert len(error.splitlines()) == 1
        assert str(home / "contexts") in error
        assert "CLEVERAGENTS_HOME" in error
    assert list_contexts(home / "contexts") == ["talk"]


def test_c73_the_store_can_be_moved_out_of_a_read_only_home(run, folder):
    home, elsewhere = folder / "home", folder / "elsewhere"
    run("talk", program=MAKE, env=environment(elsewhere, {"HOME": str(home)}))
    assert list_contexts(elsewhere / "contexts") == ["talk"]
    assert not home.exists()


def test_looking_writes_nothing(run, folder):
    for arguments in (
        ["context", "list"],
        ["context", "show", "nobody"],
        ["context", "path", "nobody"],
        ["context", "delete", "nobody", "--yes"],
        ["context", "rename", "nobody", "else"],
        ["context", "copy", "nobody", "else"],
        ["context", "export", "nobody"],
        ["context", "repair", "nobody"],
        ["context", "clear", "nobody", "--yes"],
        ["context", "search", "x"],
        ["context", "search", "x", "--context", "nobody"],
    ):
        run(*arguments, code=3 if "nobody" in arguments else 0)
    assert not list(folder.iterdir())


def test_c74_without_a_home_one_line_says_what_to_set(run, folder):
    folder.chmod(0o777)
    path = {"PATH": os.environ["PATH"]}
    # A test run that is not root cannot become an unknown user: without HOME, its own entry gives it a home.
    homeless = [{"HOME": ""}, {"HOME": "/"}, *([{}] if os.geteuid() == 0 else [])]
    for env in homeless:
        for arguments in (["context", "list"], ["context", "show", "x"]):
            error = run(*arguments, env=path | env, user=UNKNOWN, code=1).stderr
            assert len(error.splitlines()) == 1
            assert "CLEVERAGENTS_HOME" in error
        run("context", "--help", env=path | env, user=UNKNOWN)
    assert not list(folder.iterdir())
    assert not Path("/.local").exists()
    for env in ({"CLEVERAGENTS_HOME": str(folder / "given")}, {"XDG_DATA_HOME": str(folder / "data")}):
        run("talk", program=MAKE, env=path | env, user=UNKNOWN)
        assert run("context", "list", "--format", "jsonl", env=path | env, user=UNKNOWN).stdout.startswith(
            '{"name":"talk"'
        )


def test_the_data_home_is_never_a_relative_place(run, folder):
    program = "from cleveragents.contexts import contexts_root; print(contexts_root())"
    env = {"PATH": os.environ["PATH"], "HOME": str(folder / "me")}
    given = run(program=program, env=env | {"CLEVERAGENTS_HOME": "here"}).stdout
    assert given == f"{folder}/here/contexts\n"
    assert run(program=program, env=env | {"CLEVERAGENTS_HOME": "~/x"}).stdout == f"{folder}/me/x/contexts\n"
    assert run(program=program, env=env).stdout == f"{folder}/me/.local/share/cleveragents/contexts\n"


def test_c77_what_may_not_be_read_or_written_is_named_and_left_alone(run, folder):
    names = ["good", "document", "folder", "readable", "conversation"]
    run(*names, program=MAKE)
    contexts = folder / "home" / "contexts"
    (contexts / "conversation" / "messages.jsonl").chmod(0o000)
    (contexts / "document" / "context.json").chmod(0o000)
    (contexts / "folder").chmod(0o000)
    for path in (contexts / "readable").iterdir():
        path.chmod(0o444)
    listed = run("context", "list").stdout.splitlines()
    assert [line.split()[0] for line in listed[1:]] == sorted(names)
    for line in listed[1:]:
        assert ("Permission denied" in line) == (line.split()[0] in {"conversation", "document", "folder"})
    assert "in good" in run("context", "show", "good").stdout
    for name in ("conversation", "document", "folder"):
        done = run("context", "show", name, code=5)
        assert f"{contexts / name}" in done.stderr
        assert "Permission denied; check its permissions" in done.stderr
        assert "repair" not in done.stderr
    assert "in document" in run("context", "show", "document", code=5).stdout
    assert "in readable" in run("context", "show", "readable").stdout
    program = """
import sys
from cleveragents import ContextManager
from cleveragents.errors import ContextDamagedError, StorageError
for name in sys.argv[1:]:
    for call in (
        lambda context: context.add_message("user", "x"),
        lambda context: context.update_state({"x": 1}),
        lambda context: context.clear(),
        lambda context: context.repair(),
    ):
        try:
            call(ContextManager(name))
        except (ContextDamagedError, StorageError) as error:
            assert name in str(error), error
        else:
            print("changed", name)
"""
    # Nothing of these can be read as a whole, or may be written; what is not affected may be.
    assert run("document", "folder", program=program).stdout == ""
    assert set(run("conversation", program=program).stdout.splitlines()) <= {"changed conversation"}
    readable = {path: path.read_bytes() for path in (contexts / "readable").iterdir()}
    assert run("readable", program=program).stdout == "changed readable\n"  # there is nothing to repair
    assert {path: path.read_bytes() for path in (contexts / "readable").iterdir()} == readable
    run("context", "delete", "folder", "--yes")
    assert list_contexts(contexts) == sorted(set(names) - {"folder"})


def test_c77_a_store_that_may_not_be_listed_is_one_clear_error(run, folder):
    run("good", program=MAKE)
    contexts = folder / "home" / "contexts"
    contexts.chmod(0o000)
    for arguments in (["list"], ["show", "good"], ["delete", "good", "--yes"]):
        error = run("context", *arguments, code=1).stderr
        assert str(contexts) in error
        assert len(error.splitlines()) == 1
