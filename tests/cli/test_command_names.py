"""A command that is not there: the one that was meant is named, and nothing absurd."""

import pytest
from click.testing import CliRunner

from cleveragents.cli.main import cli


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("contxt", "No such command 'contxt'. Did you mean 'context'?"),
        ("ls", "No such command 'ls'. Did you mean 'context list' or 'session list'?"),
        ("new", "No such command 'new'. Did you mean 'session create'?"),
        ("validate", "No such command 'validate'. Did you mean 'config validate'?"),
        ("context ls", "No such command 'ls'. Did you mean 'list'?"),
        ("session rm x", "No such command 'rm'. Did you mean 'delete'?"),
        ("session new", "No such command 'new'. Did you mean 'create'?"),
        ("config shw", "No such command 'shw'. Did you mean 'show'?"),
        ("x", "No such command 'x'.\n"),
        ("context new", "No such command 'new'.\n"),
    ],
)
def test_the_command_that_was_meant_is_named(typed, said):
    result = CliRunner().invoke(cli, typed.split())

    assert result.exit_code == 2
    assert said in result.output
