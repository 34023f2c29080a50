"""``cleveragents session export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cleveragents.cli.kit.options import export_options
from cleveragents.cli.kit.output import show, show_bytes
from cleveragents.cli.kit.progress_bar import counting_bar
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
    from cleveragents.disk.export_file import write_export_pieces
    from cleveragents.disk.files import in_blocks

    session_id = sessions.find(id_)
    count = sessions.count(session_id)
    with counting_bar("exporting", count, shown=count >= _MANY_MESSAGES) as done:
        pieces = sessions.export_pieces(session_id, written=done)
        if output == Path("-"):
            for block in in_blocks(pieces):
                show_bytes(block)
            return
        path = Path(f"{session_id}.session.json") if output is None else output
        write_export_pieces(pieces, path, overwrite=force)
    show(str(path))
