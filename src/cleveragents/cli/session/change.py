"""``cleveragents session rename``, ``tag`` and ``link-plan``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cleveragents.cli.kit.arguments import as_typed
from cleveragents.cli.kit.output import say, show
from cleveragents.cli.kit.session_id import id_argument
from cleveragents.cli.kit.sessions import pass_sessions

if TYPE_CHECKING:
    from cleveragents.sessions.service import SessionService


@click.command(epilog="Example: cleveragents session rename last 'Summer holidays'")
@id_argument
@click.argument("title", callback=as_typed)
@pass_sessions
def rename(sessions: SessionService, id_: str, title: str) -> None:
    """Give a session another TITLE."""
    session_id = sessions.find(id_)
    sessions.update(session_id, title=title)
    say(f"session {session_id} is called {title!r} now")


@click.command(epilog="Example: cleveragents session tag last --add work --remove draft")
@id_argument
@click.option("--add", multiple=True, metavar="TAG", callback=as_typed, help="A tag to add; can be given again.")
@click.option("--remove", multiple=True, metavar="TAG", callback=as_typed, help="A tag to remove; can be given again.")
@pass_sessions
def tag(sessions: SessionService, id_: str, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
    """Add and remove tags of a session, and print those it has then, one a line."""
    session_id = sessions.find(id_)
    if add or remove:
        tags = sessions.update(session_id, add_tags=add, remove_tags=remove).tags
    else:
        tags = sessions.summary(session_id).tags
    for each in tags:
        show(each)


@click.command(
    "link-plan", epilog="Example: cleveragents session link-plan last 01ARZ3NDEKTSV4RRFFQ69G5FAV --state done"
)
@id_argument
@click.argument("plan")
@click.option("--phase", callback=as_typed, help="The phase that the plan is in.")
@click.option("--state", callback=as_typed, help="The state that the plan is in.")
@pass_sessions
def link_plan(sessions: SessionService, id_: str, plan: str, phase: str | None, state: str | None) -> None:
    """Link the PLAN of this id to a session.

    Linked again, it takes on the phase and state that are given.
    """
    session_id = sessions.find(id_)
    sessions.link_plan(session_id, plan, phase, state)
    say(f"plan {plan.upper()} is linked to session {session_id}")
