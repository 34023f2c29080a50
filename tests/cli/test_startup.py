"""What a command loads: start-up pays only for what the command uses."""

import json
import subprocess
import sys

import pytest

from cleveragents import ContextManager, open_sessions
from cleveragents.cli.main import COMMANDS
from cleveragents.cli.session.group import COMMANDS as SESSION_COMMANDS
from support.command import environment

# Each costs from a fifth of a second to a second of a start.
HEAVY = {
    "pydantic_ai",
    "openai",
    "pydantic",
    "reactivex",
    "pydantic_monty",
    "ruamel",
    "jinja2",
    "jsonschema",
    "sqlalchemy",
    "alembic",
}
# Each costs more than a bare Python start.
MIDDLING = {"asyncio", "filelock", "platformdirs", "rich", "orjson", "httpx", "tempfile", "concurrent"}

PROGRAM = """
import json, sys
sys.argv = ["cleveragents", *json.loads(sys.argv[1])]
from cleveragents.cli.main import main
try:
    main()
except SystemExit:
    pass
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def modules(home, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(arguments)],
        capture_output=True,
        env=environment(home),
        check=True,
        text=True,
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def loaded(home, *arguments):
    return {name.partition(".")[0] for name in modules(home, *arguments)}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        [],
        ["run", "--help"],
        ["context", "--help"],
        ["config", "--help"],
        ["context", "list"],
        ["session", "--help"],
        ["session", "list", "--help"],
        ["session", "list"],
        ["session", "stats"],
    ],
    ids=" ".join,
)
def test_a_light_command_loads_nothing_heavy(tmp_path, arguments):
    assert not loaded(tmp_path, *arguments) & (HEAVY | MIDDLING)


@pytest.mark.parametrize(
    "arguments",
    [["list"], ["show", "last"], ["tail", "last"], ["tag", "last"], ["stats"], ["rename", "last", "x"], ["create"]],
    ids=" ".join,
)
def test_looking_at_sessions_loads_the_driver_and_nothing_heavy(tmp_path, arguments):
    with open_sessions(f"sqlite:///{tmp_path / 'cleveragents.db'}") as sessions:
        sessions.append(sessions.create(tags=["x"]).session_id, "user", "hello")
    assert not loaded(tmp_path, "session", *arguments) & (HEAVY | MIDDLING)


@pytest.mark.parametrize(("group", "commands"), [([], COMMANDS), (["session"], SESSION_COMMANDS)])
def test_listing_commands_imports_none_of_them(tmp_path, group, commands):
    assert modules(tmp_path, *group, "--help").isdisjoint(place.partition(":")[0] for place in commands.values())


def test_a_table_of_plain_text_loads_no_library_that_measures_it(tmp_path):
    with open_sessions(f"sqlite:///{tmp_path / 'cleveragents.db'}") as sessions:
        sessions.create("a/b", title="plain", tags=["x"])
        ContextManager("plain", tmp_path / "contexts")
        for command in ("session", "context"):
            assert "rich" not in loaded(tmp_path, command, "list")
        sessions.create("a/b", title="日本語")
        assert "rich" in loaded(tmp_path, "session", "list")


def test_batches_know_nothing_of_the_command_line():
    program = "import sys, cleveragents.app, cleveragents.batch.result_file; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert not {name for name in done.stdout.split() if name.startswith(("click", "cleveragents.cli"))}


def test_importing_the_package_loads_none_of_its_modules():
    done = subprocess.run(
        [sys.executable, "-c", "import sys, cleveragents; print(*sys.modules)"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert {name for name in done.stdout.split() if name.startswith("cleveragents")} == {"cleveragents"}


def test_a_run_of_tools_alone_loads_no_llm_library(tmp_path):
    config = tmp_path / "echo.yaml"
    config.write_text("agents: {echo: {type: tool, code: result = message}}", encoding="utf-8")
    assert not loaded(tmp_path, "run", str(config), "hello") & {"pydantic_ai", "openai", "jinja2", "sqlalchemy"}


def test_looking_writes_nothing(tmp_path):
    home = tmp_path / "home"
    for arguments in (["--help"], ["--version"], ["context", "list"], ["context", "show", "nobody"], ["run", "--help"]):
        loaded(home, *arguments)
    assert not home.exists()
