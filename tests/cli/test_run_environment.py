"""``run`` where little is allowed or odd settings are made."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cleveragents import ContextManager
from support.command import command, environment, one_line

# No agent is asked, so that a user without privileges need not be able to start a sandbox.
THROUGH = "agents: {unused: {type: tool, code: pass}}\nroutes: {r: {from: input, through: [{take: 1}], to: output}}\n"

# A user without privileges may not be able to read the interpreter's modules: a first run loads all of them.
TWICE = """
import os, sys, tempfile
from cleveragents.cli.main import main
arguments, more, home = sys.argv[1:4], sys.argv[4:], os.environ.get("CLEVERAGENTS_HOME")
with tempfile.TemporaryDirectory() as warm:
    os.environ["CLEVERAGENTS_HOME"] = warm
    sys.argv = ["cleveragents", *arguments, "--context", "warm", "--output-format", "stream-json"]
    stdout = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        main()
    except SystemExit:
        pass
    os.dup2(stdout, 1)
os.environ.pop("CLEVERAGENTS_HOME")
if home is not None:
    os.environ["CLEVERAGENTS_HOME"] = home
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(54321)
    os.setuid(54321)
sys.argv = ["cleveragents", *arguments, *more]
main()
"""


@pytest.fixture
def folder():
    """A folder that anybody may look into: those of pytest are private."""
    with tempfile.TemporaryDirectory(prefix="run") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def run(folder):
    """``run`` as a user without privileges and without an entry in the list of users; ``more`` are further options."""
    config = folder / "pass.yaml"
    config.write_text(THROUGH, encoding="utf-8")

    def running(*more, env):
        return subprocess.run(
            [sys.executable, "-c", TWICE, "run", str(config), "hello", *more],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env=env,
        )

    return running


def test_c73_without_a_context_a_read_only_home_is_no_hindrance(run, folder):
    done = run(env=environment(folder / "home"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")


def test_c73_with_a_context_one_line_names_the_place_and_how_to_move_it(run, folder):
    line = one_line(run("--context", "talk", env=environment(folder / "home")), 1)
    assert str(folder / "home") in line
    assert "CLEVERAGENTS_HOME" in line


def test_c74_without_a_home_and_a_known_user_a_run_works_and_a_context_needs_a_place(run, folder):
    bare = {"PATH": os.environ["PATH"]}
    assert run(env=bare).stdout == "hello\n"
    assert "CLEVERAGENTS_HOME" in one_line(run("--context", "talk", env=bare), 1)
    place = folder / "place"
    place.mkdir()
    place.chmod(0o777)
    assert run("--context", "talk", env={**bare, "CLEVERAGENTS_HOME": str(place)}).stdout == "hello\n"
    assert (place / "contexts" / "talk").is_dir()


def test_c28_text_is_the_same_whatever_the_locale(tmp_path):
    config = tmp_path / "é.yaml"
    config.write_text("agents: {echo: {type: tool, code: 'result = \"é \" + message'}}", encoding="utf-8")
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "utf-8"}
    prompt = "Привет 🎉"
    for _ in range(2):
        done = command("run", config, prompt, "--context", "talk", home=tmp_path, env=env)
        assert done.returncode == 0, done.stderr
    contents = [message.content for message in ContextManager.open("talk", root=tmp_path / "contexts").messages]
    assert contents[:3] == [prompt, f"é {prompt}", prompt]
    assert contents[3].endswith(prompt)
    exported = command("context", "export", "talk", "--output", "-", home=tmp_path, env=env)
    assert json.loads(exported.stdout)["messages"][0]["content"] == prompt


def test_warnings_do_not_mix_with_json(tmp_path):
    config = tmp_path / "pass.yaml"
    config.write_text("agents: {echo: {type: tool, code: 'print(1); result = {\"a\": message}'}}", encoding="utf-8")
    done = command(
        "run",
        config,
        "x",
        "--output-format",
        "json",
        home=tmp_path,
        env={"PYTHONWARNINGS": "always", "PYTHONDEVMODE": "1"},
    )
    assert json.loads(done.stdout)["output"] == {"a": "x"}
