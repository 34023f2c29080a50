"""``cleveragents session``: which commands there are. Each is imported when it is used."""

from __future__ import annotations

import click

from cleveragents.cli.lazy_group import LazyGroup

_HERE = "cleveragents.cli.session"

COMMANDS: dict[str, tuple[str, str, str]] = {
    "create": (f"{_HERE}_change", "create", "Make a session without messages and print its id."),
    "list": (f"{_HERE}_view", "list_", "List sessions, newest activity first."),
    "show": (f"{_HERE}_view", "show", "Show a session and its messages."),
    "tail": (f"{_HERE}_view", "tail", "Show the last messages of a session, and those to come."),
    "tell": (f"{_HERE}_tell", "tell", "Go on with a session: run its agents on a prompt."),
    "rename": (f"{_HERE}_change", "rename", "Give a session another title."),
    "tag": (f"{_HERE}_change", "tag", "Add and remove tags of a session, and print those it has."),
    "link-plan": (f"{_HERE}_change", "link_plan", "Link a plan to a session."),
    "delete": (f"{_HERE}_change", "delete", "Remove sessions and everything that belongs to them."),
    "export": (f"{_HERE}_transfer", "export", "Write a session to a JSON file with a checksum."),
    "import": (f"{_HERE}_transfer", "import_", "Make a session of an exported file, or of a context."),
    "verify": (f"{_HERE}_transfer", "verify", "Check a stored session, or an exported file."),
    "stats": (f"{_HERE}_stats", "stats", "Show what was used, by day, actor and llm."),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, epilog="Example: cleveragents session show last --last 5")
def session() -> None:
    """Sessions: conversations in the database.

    ID is the id of a session, the beginning of one, or 'last' for the session with the newest activity.
    """
