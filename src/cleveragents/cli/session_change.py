"""``cleveragents session create``, ``rename``, ``tag``, ``link-plan`` and ``delete``."""

from __future__ import annotations

import click

from cleveragents.cli.output import as_typed, confirm, say
from cleveragents.cli.output import show as show_text
from cleveragents.cli.session_id import SessionId, id_argument

_LEVELS = ("manual", "review_before_apply", "full_automation")


@click.command(epilog="Example: cleveragents session create --actor local/assistant --title Holidays --tag 2026")
@click.option("--actor", metavar="NAME", help="The actor it belongs to, such as local/assistant.")
@click.option("--namespace", metavar="NAME", default="local", show_default=True, help="The namespace it belongs to.")
@click.option("--title", callback=as_typed, help="What it is about.")
@click.option("--level", type=click.Choice(_LEVELS), help="How much its agents may do without asking.")
@click.option("--tag", "tags", multiple=True, callback=as_typed, help="A tag; can be given again.")
def create(actor: str | None, namespace: str, title: str | None, level: str | None, tags: tuple[str, ...]) -> None:
    """Make a session without messages and print its id."""
    from cleveragents.sessions.open import open_sessions

    with open_sessions() as sessions:
        made = sessions.create(actor, namespace=namespace, title=title, automation_level=level, tags=tags)
    print(made.session_id)


@click.command(epilog="Example: cleveragents session rename last 'Summer holidays'")
@id_argument
@click.argument("title", callback=as_typed)
def rename(id_: str, title: str) -> None:
    """Give a session another TITLE."""
    from cleveragents.sessions.open import open_sessions

    with open_sessions() as sessions:
        session_id = sessions.find(id_)
        sessions.update(session_id, title=title)
    say(f"session {session_id} is called {title!r} now")


@click.command(epilog="Example: cleveragents session tag last --add work --remove draft")
@id_argument
@click.option("--add", multiple=True, metavar="TAG", callback=as_typed, help="A tag to add; can be given again.")
@click.option("--remove", multiple=True, metavar="TAG", callback=as_typed, help="A tag to remove; can be given again.")
def tag(id_: str, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
    """Add and remove tags of a session, and print those it has then, one a line."""
    from cleveragents.sessions.open import open_sessions

    with open_sessions() as sessions:
        session_id = sessions.find(id_)
        if add or remove:
            tags = sessions.update(session_id, add_tags=add, remove_tags=remove).tags
        else:
            tags = sessions.summary(session_id).tags
    for each in tags:
        show_text(each)


@click.command(
    "link-plan", epilog="Example: cleveragents session link-plan last 01ARZ3NDEKTSV4RRFFQ69G5FAV --state done"
)
@id_argument
@click.argument("plan")
@click.option("--phase", callback=as_typed, help="The phase that the plan is in.")
@click.option("--state", callback=as_typed, help="The state that the plan is in.")
def link_plan(id_: str, plan: str, phase: str | None, state: str | None) -> None:
    """Link the PLAN of this id to a session. Linked again, it takes on the phase and state that are given."""
    from cleveragents.sessions.open import open_sessions

    with open_sessions() as sessions:
        session_id = sessions.find(id_)
        sessions.link_plan(session_id, plan, phase, state)
    say(f"plan {plan.upper()} is linked to session {session_id}")


@click.command(epilog="Example: cleveragents session delete 01ARZ3NDEKTSV4RRFFQ69G5FAV --yes")
@click.argument("ids", metavar="ID...", type=SessionId(), nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do it without asking.")
def delete(ids: tuple[str, ...], yes: bool) -> None:
    """Remove sessions and everything that belongs to them, for good."""
    from cleveragents.sessions.open import open_sessions

    with open_sessions() as sessions:
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
