"""Groups of commands that say what is meant when there is no such command."""

from __future__ import annotations

from typing import Any

import click

_SAME = {"ls": "list", "rm": "delete", "remove": "delete", "new": "create", "mv": "rename", "cp": "copy"}
"""What other programs call a command, and its name here."""


class CommandGroup(click.Group):
    """A group that names the nearest command, here or in one of its groups, when it has none of a name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """See click. Raises UsageError with the command that was meant."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            meant = self._meant(ctx, name)
            ctx.fail(f"No such command {name!r}." + (f" Did you mean {' or '.join(meant)}?" if meant else ""))
        return super().resolve_command(ctx, args)

    def _meant(self, ctx: click.Context, name: str) -> list[str]:
        from difflib import get_close_matches

        commands = self.list_commands(ctx)
        same = _SAME.get(name, name)
        if same in commands:
            return [repr(same)]
        inner: dict[str, Any] = {command: self.get_command(ctx, command) for command in commands}
        below = [f"'{group} {same}'" for group, command in inner.items() if _has(command, same, ctx)]
        return below or [repr(near) for near in get_close_matches(name, commands, n=1)]


def _has(command: Any, name: str, ctx: click.Context) -> bool:
    return isinstance(command, click.Group) and name in command.list_commands(ctx)
