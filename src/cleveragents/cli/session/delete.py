"""``cleveragents session delete``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cleveragents.cli.kit.confirmation import confirm, yes_option
from cleveragents.cli.kit.output import say
from cleveragents.cli.kit.session_id import SessionId
from cleveragents.cli.kit.sessions import pass_sessions

if TYPE_CHECKING:
    from cleveragents.sessions.service import SessionService


@click.command(epilog="Example: cleveragents session delete 01ARZ3NDEKTSV4RRFFQ69G5FAV --yes")
@click.argument("ids", metavar="ID...", type=SessionId(), nargs=-1, required=True)
@yes_option
@pass_sessions
def delete(sessions: SessionService, ids: tuple[str, ...], yes: bool) -> None:
    """Remove sessions and everything that belongs to them, for good."""
    # Each is known before any is removed.
    found = {summary.session_id: summary for summary in (sessions.summary(sessions.find(each)) for each in ids)}
    named = [
        f"{session_id} ({summary.title or 'without a title'}, {summary.message_count} messages)"
        for session_id, summary in found.items()
    ]
    confirm(f"Delete {'session' if len(found) == 1 else f'{len(found)} sessions'} {', '.join(named)}?", yes)
    for session_id in found:
        sessions.delete(session_id)
        say(f"session {session_id} was deleted")
