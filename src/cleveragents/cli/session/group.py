"""``cleveragents session``: which commands there are. Each is imported when it is used."""

from __future__ import annotations

import click

from cleveragents.cli.kit.lazy_group import LazyGroup

COMMANDS = {
    "create": "cleveragents.cli.session.create:create",
    "list": "cleveragents.cli.session.list:list_",
    "show": "cleveragents.cli.session.show:show",
    "tail": "cleveragents.cli.session.show:tail",
    "tell": "cleveragents.cli.session.tell:tell",
    "rename": "cleveragents.cli.session.change:rename",
    "tag": "cleveragents.cli.session.change:tag",
    "link-plan": "cleveragents.cli.session.change:link_plan",
    "delete": "cleveragents.cli.session.delete:delete",
    "export": "cleveragents.cli.session.export:export",
    "import": "cleveragents.cli.session.import_:import_",
    "verify": "cleveragents.cli.session.verify:verify",
    "stats": "cleveragents.cli.session.stats:stats",
}


@click.group(cls=LazyGroup, lazy=COMMANDS, epilog="Example: cleveragents session show last --last 5")
def session() -> None:
    """Sessions: conversations in the database.

    ID is the id of a session, the beginning of one, or 'last' for the session with the newest activity.
    """
