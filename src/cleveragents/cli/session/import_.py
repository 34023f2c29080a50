"""``cleveragents session import``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cleveragents.cli.kit.context_name import ContextName
from cleveragents.cli.kit.output import warn
from cleveragents.cli.kit.progress_bar import step_bar
from cleveragents.cli.kit.sessions import pass_sessions
from cleveragents.cli.session.document_file import naming, read
from cleveragents.errors import InvalidValueError, SessionImportError, SessionNotFoundError

if TYPE_CHECKING:
    from cleveragents.sessions.service import SessionService
    from cleveragents.sessions.session import Session

_MANY_BYTES = 8_000_000
"""From here on a person is shown how far it is: a second or more."""


@click.command("import", epilog="Example: cleveragents session import holidays.json")
@click.argument("file", required=False, type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--from-context", "context", type=ContextName(), metavar="NAME", help="Import this context instead.")
@click.option("--again", is_flag=True, help="Import it although it was imported already.")
@pass_sessions
def import_(sessions: SessionService, file: Path | None, context: str | None, again: bool) -> None:
    """Make a new session of an exported FILE ('-': standard input), or of a context, and print its id.

    A file that is incomplete or was changed is refused, and one larger than 256 MiB; also one that was imported
    already, without --again.
    """
    if (file is None) == (context is None):
        raise click.UsageError("give either a FILE or --from-context NAME")
    if file is not None and file != Path("-") and not file.exists():
        raise SessionNotFoundError(f"there is no file {str(file)!r} to import")
    made = _from_context(sessions, context, again) if file is None else _from_file(sessions, file, again)
    print(made.session_id)


def _from_file(sessions: SessionService, file: Path, again: bool) -> Session:
    from cleveragents.sessions.document import read_document
    from cleveragents.values.json import IMPORT_LIMIT, load_json

    document: Any = read(file)
    size = len(document)
    with naming(file), step_bar("importing", 4, shown=size >= _MANY_BYTES) as step:
        step("reading")
        if size <= IMPORT_LIMIT:
            try:
                document = load_json(document)
            except InvalidValueError as error:
                raise SessionImportError(f"the document cannot be imported: {error}") from None
        stated = document.get("checksum") if isinstance(document, dict) else None
        if isinstance(stated, str) and not again and sessions.list(limit=1, imported_checksum=stated):
            # That it was changed since is the greater trouble.
            read_document(document)
            _refuse_again(sessions, stated, file)
        return sessions.import_(document, step=step)


def _from_context(sessions: SessionService, name: str | None, again: bool) -> Session:
    from cleveragents.contexts import ContextManager
    from cleveragents.integrations.contexts_and_sessions import session_of_context

    context = ContextManager.open(str(name), on_damage=warn)
    document = context.export()
    if not again:
        _refuse_again(sessions, document["checksum"], f"context {context.name!r} as it is now")
    origin = {"context": context.name, "checksum": document["checksum"]}
    return sessions.adopt(session_of_context(document), origin, document["checksum"])


def _refuse_again(sessions: SessionService, checksum: str, what: object) -> None:
    for summary in sessions.list(limit=1, imported_checksum=checksum):
        raise click.ClickException(
            f"{what} was imported already, as session {summary.session_id}; --again does it again"
        )
