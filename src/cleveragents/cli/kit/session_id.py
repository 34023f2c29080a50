"""A session's id on the command line: whole, its beginning, or ``last``; completed by the shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cleveragents.cli.kit.arguments import typed_text

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_OFFERED = 50


class SessionId(click.ParamType):  # type: ignore[type-arg] # generic at run time only in newer releases of click
    """What SessionService.find takes. It is looked for when the command runs, not here."""

    name = "id"

    def convert(self, value: str, _param: click.Parameter | None, _ctx: click.Context | None) -> str:
        """The text as it was typed, whatever the locale."""
        return typed_text(value)

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The newest sessions whose ids begin with what was typed, with their titles."""
        from click.shell_completion import CompletionItem

        from cleveragents.errors import CleverAgentsError
        from cleveragents.sessions.open import open_sessions
        from cleveragents.values.text import terminal_text

        try:
            with open_sessions() as sessions:
                found = sessions.list(limit=_OFFERED, id_prefix=incomplete or None)
        except CleverAgentsError:
            return []  # a shell that completes is no place for an error
        # A shell replaces what was typed only by what begins alike.
        lower = incomplete != incomplete.upper()
        return [
            CompletionItem(
                summary.session_id.lower() if lower else summary.session_id,
                help=terminal_text(summary.title or summary.actor_name or "").replace("\n", " ") or None,
            )
            for summary in found
        ]


id_argument = click.argument("id_", metavar="ID", type=SessionId())
