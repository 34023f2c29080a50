"""``cleveragents session create``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cleveragents.cli.kit.arguments import as_typed
from cleveragents.cli.kit.sessions import pass_sessions

if TYPE_CHECKING:
    from cleveragents.sessions.service import SessionService

_LEVELS = ("manual", "review_before_apply", "full_automation")


@click.command(epilog="Example: cleveragents session create --actor local/assistant --title Holidays --tag 2026")
@click.option("--actor", metavar="NAME", help="The actor it belongs to, such as local/assistant.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The configuration file that runs on it use; its actor, unless --actor names one.",
)
@click.option("--namespace", metavar="NAME", default="local", show_default=True, help="The namespace it belongs to.")
@click.option("--title", callback=as_typed, help="What it is about.")
@click.option("--level", type=click.Choice(_LEVELS), help="How much its agents may do without asking.")
@click.option("--tag", "tags", multiple=True, callback=as_typed, help="A tag; can be given again.")
@pass_sessions
def create(
    sessions: SessionService,
    actor: str | None,
    config: Path | None,
    namespace: str,
    title: str | None,
    level: str | None,
    tags: tuple[str, ...],
) -> None:
    """Make a session without messages and print its id."""
    metadata = None
    if config is not None:
        from cleveragents.config import load_config
        from cleveragents.sessions.config_file import ConfigFile

        loaded = load_config(config)
        actor = actor or loaded.name
        metadata = ConfigFile.at(config).as_metadata({})
    made = sessions.create(
        actor, namespace=namespace, title=title, automation_level=level, tags=tags, metadata=metadata
    )
    print(made.session_id)
