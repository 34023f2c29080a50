"""``cleveragents session export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cleveragents.cli.kit.options import export_options
from cleveragents.cli.kit.output import show, show_bytes
from cleveragents.cli.kit.progress_bar import step_bar
from cleveragents.cli.kit.session_id import id_argument
from cleveragents.cli.kit.sessions import pass_sessions

if TYPE_CHECKING:
    from cleveragents.sessions.service import SessionService

_MANY_MESSAGES = 20_000
"""From here on a person is shown how far it is: a second or more."""


@click.command(epilog="Example: cleveragents session export last --output holidays.json")
@id_argument
@export_options
@pass_sessions
def export(sessions: SessionService, id_: str, output: Path | None, force: bool) -> None:
    """Write a session to one JSON file with a checksum.

    The file is <id>.session.json unless --output says else.
    """
    from cleveragents.disk.export_file import export_bytes, write_export

    session_id = sessions.find(id_)
    path = Path(f"{session_id}.session.json") if output is None else output
    with step_bar("exporting", 3, shown=sessions.count(session_id) >= _MANY_MESSAGES) as step:
        document = sessions.export(session_id, step=step)
        step("writing")
        if path == Path("-"):
            show_bytes(export_bytes(document))
            return
        write_export(document, path, overwrite=force)
    show(str(path))
