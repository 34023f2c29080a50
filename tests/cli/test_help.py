"""What ``--help`` says: each text stands once, in the command's docstring."""

import pytest
from click.testing import CliRunner

from cleveragents.cli.main import COMMANDS, cli
from cleveragents.cli.session.group import COMMANDS as SESSION_COMMANDS


def helped(*words):
    done = CliRunner().invoke(cli, [*words, "--help"], prog_name="cleveragents")
    assert done.exit_code == 0
    return done.output


@pytest.mark.parametrize(("group", "commands"), [([], COMMANDS), (["session"], SESSION_COMMANDS)])
def test_a_group_says_of_each_command_what_that_says_of_itself_first(group, commands):
    listing = " ".join(helped(*group).partition("Commands:")[2].split())
    for name in commands:
        first = " ".join(helped(*group, name).split("\n\n")[1].split())
        assert first.endswith(".")
        assert f"{name} {first}" in listing
