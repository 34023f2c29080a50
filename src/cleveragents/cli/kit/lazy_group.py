"""Groups of commands that are imported when they are used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from cleveragents.cli.exit_codes import ExitCode
from cleveragents.cli.kit.command_group import CommandGroup
from cleveragents.cli.kit.output import discard_stdout

if TYPE_CHECKING:
    import click


class LazyGroup(CommandGroup):
    """A group whose commands are imported when used, and listed without being imported.

    ``lazy`` says where each command is, as ``module:function``.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = lazy

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Names in the order they are declared."""
        return [*self._lazy]

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None when there is no such one."""
        if cmd_name not in self._lazy:
            return None
        module, _, function = self._lazy[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), function)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. That the reader of a pipe has gone is no failure, as click would have it."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            discard_stdout()
            return ExitCode.DONE

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, each with the first line of its help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_line(place)) for name, place in self._lazy.items()])


def _first_line(place: str) -> str:
    """The first line of a command's docstring, read in its source: importing all commands would cost the start-up."""
    module, _, function = place.partition(":")
    spec = find_spec(module)
    if spec is None or not isinstance(spec.loader, SourceFileLoader):
        return ""
    source = spec.loader.get_data(spec.loader.path).decode()
    found = re.search(rf'^def {function}\(.*?"""(.+?)(?:"""|\n)', source, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""
