"""Commands that take a prompt: when it slips on its way through a shell, they say how to write it."""

from __future__ import annotations

import shlex

import click


class PromptCommand(click.Command):
    """A command whose last argument is a prompt."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does; UsageErrors say what to do for a prompt without quotes or one that begins like an option."""
        ctx.allow_extra_args = True
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.possibilities or ctx.resilient_parsing:
                raise
            raise click.UsageError(
                f"{error.message}; a prompt that begins with a dash goes last, after '--'", ctx
            ) from None
        if ctx.args and not ctx.resilient_parsing:
            words = [ctx.params.get("prompt") or "", *ctx.args]
            prompt = shlex.quote(" ".join(words))
            raise click.UsageError(f"the prompt has to be one argument; quote it: {prompt:.200}", ctx)
        return rest
