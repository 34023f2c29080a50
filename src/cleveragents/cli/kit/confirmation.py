"""Asking before something is done that cannot be undone."""

from __future__ import annotations

import sys

import click

from cleveragents.cli.exit_codes import ExitCode
from cleveragents.cli.kit.output import say
from cleveragents.values.text import terminal_text

yes_option = click.option("--yes", is_flag=True, help="Do it without asking.")


def confirm(question: str, yes: bool) -> None:
    """Go on only if the person wants it: asked on a terminal, told by --yes elsewhere."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{question} There is no terminal to ask on; add --yes to do it")
    if not click.confirm(terminal_text(question), err=True):
        say("nothing was changed")
        click.get_current_context().exit(ExitCode.APPROVAL_REFUSED)
