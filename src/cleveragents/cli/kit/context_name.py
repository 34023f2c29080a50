"""A context's name on the command line: as it was typed, and completed by the shell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cleveragents.cli.kit.arguments import typed_text

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class ContextName(click.ParamType):  # type: ignore[type-arg] # generic at run time only in newer releases of click
    """The name of a context that is there, or of one to be made; what may be a name is decided elsewhere."""

    name = "name"

    def convert(self, value: str, _param: click.Parameter | None, _ctx: click.Context | None) -> str:
        """The name as it was typed, whatever the locale."""
        return typed_text(value)

    def shell_complete(self, _ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The contexts whose names begin with what was typed."""
        from click.shell_completion import CompletionItem

        from cleveragents.contexts import list_contexts
        from cleveragents.errors import CleverAgentsError

        try:
            names = list_contexts()
        except CleverAgentsError:
            return []  # a shell that completes is no place for an error
        return [CompletionItem(name) for name in names if name.startswith(typed_text(incomplete))]
