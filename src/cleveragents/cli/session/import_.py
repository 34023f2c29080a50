"""``cleveragents session import``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from cleveragents.cli.kit.arguments import typed_text
from cleveragents.cli.kit.context_name import ContextName
from cleveragents.cli.kit.options import max_size_option
from cleveragents.cli.kit.output import warn
from cleveragents.cli.kit.progress_bar import step_bar
from cleveragents.cli.kit.sessions import pass_sessions
from cleveragents.cli.session.document_file import opened
from cleveragents.errors import SessionNotFoundError

if TYPE_CHECKING:
    from cleveragents.sessions.received import Received
    from cleveragents.sessions.service import SessionService

_MANY_BYTES = 8_000_000
"""From here on a person is shown how far it is: a second or more."""


@click.command("import", epilog="Example: cleveragents session import holidays.json")
@click.argument("file", required=False, type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--from-context", "context", type=ContextName(), metavar="NAME", help="Import this context instead.")
@click.option("--again", is_flag=True, help="Import it although it is here already.")
@max_size_option
@pass_sessions
def import_(
    sessions: SessionService, file: Path | None, context: str | None, again: bool, max_size: int | None
) -> None:
    """Make a new session of an exported FILE ('-': standard input), or of a context, and print its id.

    A file that is incomplete or was changed is refused, and, without --again, one that was imported already or whose
    session is here itself.
    """
    if (file is None) == (context is None):
        raise click.UsageError("give either a FILE or --from-context NAME")
    if file is None:
        print(_from_context(sessions, context, again))
        return
    if file != Path("-") and not file.exists():
        raise SessionNotFoundError(f"there is no file {str(file)!r} to import")
    print(_from_file(sessions, file, again, max_size))


def _from_file(sessions: SessionService, file: Path, again: bool, max_size: int | None) -> str:
    from cleveragents.sessions.received import received

    is_long = file.is_file() and file.stat().st_size >= _MANY_BYTES
    with opened(file, max_size) as pieces, step_bar("importing", 2, shown=is_long) as step:
        step("checking")
        with received(pieces) as document:
            if not again:
                _refuse_own(sessions, document, file)
                _refuse_again(sessions, document.checksum, typed_text(str(file)))
            step("storing messages")
            return sessions.import_received(document).session_id


def _from_context(sessions: SessionService, name: str | None, again: bool) -> str:
    from cleveragents.contexts import ContextManager
    from cleveragents.integrations.contexts_and_sessions import session_of_context

    context = ContextManager.open(str(name), on_damage=warn)
    document = context.export()
    if not again:
        _refuse_again(sessions, document["checksum"], f"context {context.name!r} as it is now")
    origin = {"context": context.name, "checksum": document["checksum"]}
    return sessions.adopt(session_of_context(document), origin, document["checksum"]).session_id


def _refuse_own(sessions: SessionService, document: Received, file: Path) -> None:
    own = document.session.summary.session_id
    if sessions.list(limit=1, id_prefix=own):
        raise click.ClickException(
            f"{typed_text(str(file))} is of session {own}, which is still here; --again makes a copy of it"
        )


def _refuse_again(sessions: SessionService, checksum: str, what: str) -> None:
    for summary in sessions.list(limit=1, imported_checksum=checksum):
        raise click.ClickException(
            f"{what} was imported already, as session {summary.session_id}; --again does it again"
        )
