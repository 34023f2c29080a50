"""What slips on the way to a command: prompts without quotes, files that are missing, in one line with what to do."""

import signal

import pytest
from click.testing import CliRunner

from cleveragents import open_sessions
from cleveragents.cli.exit_codes import ExitCode, exit_code
from cleveragents.cli.main import cli

CONFIG = "name: local/loud\nagents: {loud: {type: tool, code: result = message.upper()}}\n"


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Run a command in this process, in a folder with loud.yaml: its exit code, its output and what is wrong."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLEVERAGENTS_HOME", str(tmp_path / "home"))
    (tmp_path / "loud.yaml").write_text(CONFIG, encoding="utf-8")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    def run(*arguments):
        done = CliRunner().invoke(cli, arguments, standalone_mode=False)
        code = exit_code(done.exception) if done.exception else done.return_value or ExitCode.DONE
        return code, done.stdout, done.stderr + str(done.exception or "")

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_several_words_without_quotes(invoke):
    code, _, said = invoke("run", "loud.yaml", "What", "is", "it?")
    assert code == ExitCode.WRONG_USAGE
    assert "quote it: 'What is it?'" in said


@pytest.mark.parametrize("prompt", ["- one thing", "-5 degrees", "-x"])
def test_a_prompt_that_begins_with_a_dash(invoke, prompt):
    code, _, said = invoke("run", "loud.yaml", prompt)
    assert (code, "after '--'" in said) == (ExitCode.WRONG_USAGE, True)
    assert invoke("run", "loud.yaml", "--", prompt)[:2] == (ExitCode.DONE, f"{prompt.upper()}\n")


def test_a_prompt_where_the_file_should_be(invoke):
    code, _, said = invoke("run", "What is it?")
    assert (code, "the configuration file comes first" in said) == (ExitCode.NOT_FOUND, True)
    code, _, said = invoke("run", "What is it?", "loud.yaml")
    assert (code, "swap the two" in said) == (ExitCode.NOT_FOUND, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "nope", "x"],
        ["run", "loud.yaml", "--batch", "nope"],
        ["run", "loud.yaml", "--batch", "loud.yaml", "--output", "new", "--retry-failed", "nope"],
        ["config", "validate", "nope", "loud.yaml"],
        ["config", "show", "nope"],
        ["config", "graph", "nope"],
        ["context", "import", "nope"],
        ["session", "import", "nope"],
        ["session", "verify", "./nope.json"],
        ["session", "create", "--config", "nope"],
    ],
    ids=" ".join,
)
def test_a_missing_file_is_one_exit_code_everywhere(invoke, arguments):
    code, _, said = invoke(*arguments)
    assert (code, "nope" in said) == (ExitCode.NOT_FOUND, True), said


def test_a_hint_of_paging_keeps_the_filters(invoke):
    with open_sessions() as sessions:
        for _ in range(3):
            sessions.create("local/loud", tags=["two words"])
    _, _, said = invoke(
        "session", "list", "--tag", "two words", "--actor", "local/loud", "--since", "2020-01-01", "--limit", "1"
    )
    command = said.partition("'cleveragents ")[2].rpartition("' goes on")[0]
    assert command.startswith("session list --actor local/loud --tag 'two words' --since 2020-01-01T00:00:00+00:00 ")
    assert "--limit 1 --after" in command


def test_a_session_made_with_a_file_has_its_actor_and_is_gone_on_with(invoke):
    code, session_id, _ = invoke("session", "create", "--config", "loud.yaml")
    assert code == ExitCode.DONE
    with open_sessions() as sessions:
        assert sessions.summary(session_id.strip()).actor_name == "local/loud"
    assert invoke("session", "tell", session_id.strip(), "x")[:2] == (ExitCode.DONE, "X\n")


@pytest.mark.parametrize("group", ["context", "session", "config", "db"])
def test_every_command_has_its_whole_line_in_the_help_of_its_group(invoke, group):
    lines = invoke(group, "--help")[1].splitlines()
    assert [line for line in lines if line.endswith("...") and not line.startswith("Usage")] == []
