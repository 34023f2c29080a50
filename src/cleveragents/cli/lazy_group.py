"""Groups of commands that are imported when they are used."""

from __future__ import annotations

from typing import Any

import click

from cleveragents.cli.output import discard_stdout


class LazyGroup(click.Group):
    """A group whose commands are imported when used, and listed without being imported."""

    def __init__(self, *args: Any, lazy: dict[str, tuple[str, str, str]] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.lazy = lazy or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order they are declared."""
        return [*self.lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None when there is no such one."""
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        from importlib import import_module

        module, attribute, _ = self.lazy[cmd_name]
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. That the reader of a pipe has gone is no failure, as click would have it."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            discard_stdout()
            return 0

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, _, help_) in self.lazy.items()])
