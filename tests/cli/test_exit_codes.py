"""The exit codes of commands, as the page tells them."""

import re

import pytest

from cleveragents import BatchBusyError, BatchDamagedError, BatchError, BatchResultsError
from cleveragents.cli.exit_codes import ExitCode, exit_code
from support.command import command
from support.pages import page


def test_the_page_tells_every_code():
    rows = re.findall(r"^\| (\d+) \|", page("commands.md").section("Exit codes").text, flags=re.MULTILINE)
    assert [int(row) for row in rows] == list(ExitCode)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BatchError("x"), ExitCode.FAILED),
        (BatchResultsError("x"), ExitCode.WRONG_USAGE),
        (BatchDamagedError("x"), ExitCode.DAMAGED),
        (BatchBusyError("x"), ExitCode.IN_USE),
        (RuntimeError("x"), ExitCode.FAILED),
    ],
    ids=repr,
)
def test_errors_of_batches_have_codes_of_their_own(error, code):
    assert exit_code(error) is code


def test_a_traceback_is_shown_on_request_and_is_safe_for_a_terminal(home, tmp_path):
    path = tmp_path / "loud.yaml"
    path.write_text(
        "agents:\n  loud: {type: tool, code: \"raise ValueError('\\\\x1b]0;owned\\\\x07')\"}\n", encoding="utf-8"
    )
    done = command("--debug", "run", path, "go", home=home)
    assert done.returncode == ExitCode.FAILED
    assert done.stderr.startswith("Traceback (most recent call last):\n")
    assert done.stderr.endswith("ToolError: agent loud: ValueError: \\x1b]0;owned\\x07 (line 1)\n")
    assert "\x1b" not in done.stderr
