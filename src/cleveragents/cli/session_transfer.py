"""``cleveragents session export``, ``import`` and ``verify``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cleveragents.cli.context_name import ContextName
from cleveragents.cli.output import format_option, say, show_bytes, show_json, typed_text
from cleveragents.cli.output import show as show_text
from cleveragents.cli.session_id import SessionId, id_argument
from cleveragents.errors import InvalidValueError, SessionImportError, SessionNotFoundError

if TYPE_CHECKING:
    from cleveragents.sessions.service import SessionService
    from cleveragents.sessions.session import Session

_MANY_MESSAGES, _MANY_BYTES = 20_000, 8_000_000
"""From here on a person is shown how far it is: a second or more."""


@click.command(epilog="Example: cleveragents session export last --output holidays.json")
@id_argument
@click.option(
    "--output", type=click.Path(path_type=Path, allow_dash=True), help="The file to write, '-' for standard output."
)
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
def export(id_: str, output: Path | None, force: bool) -> None:
    """Write a session to one JSON file with a checksum; <id>.session.json unless --output says else."""
    from cleveragents.disk.export_file import export_bytes, write_export
    from cleveragents.sessions.open import open_sessions

    with open_sessions() as sessions:
        session_id = sessions.find(id_)
        path = Path(f"{session_id}.session.json") if output is None else output
        with _steps("exporting", 3, shown=sessions.count(session_id) >= _MANY_MESSAGES) as step:
            document = sessions.export(session_id, step=step)
            step("writing")
            if path == Path("-"):
                show_bytes(export_bytes(document))
                return
            write_export(document, path, overwrite=force)
    show_text(str(path))


@click.command("import", epilog="Example: cleveragents session import holidays.json")
@click.argument("file", required=False, type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--from-context", "context", type=ContextName(), metavar="NAME", help="Import this context instead.")
@click.option("--again", is_flag=True, help="Import it although it was imported already.")
def import_(file: Path | None, context: str | None, again: bool) -> None:
    """Make a new session of an exported FILE ('-': standard input), or of a context, and print its id.

    A file that is incomplete or was changed is refused, and one larger than 256 MiB; also one that was imported
    already, without --again.
    """
    from cleveragents.sessions.open import open_sessions

    if (file is None) == (context is None):
        raise click.UsageError("give either a FILE or --from-context NAME")
    if file is not None and file != Path("-") and not file.exists():
        raise SessionNotFoundError(f"there is no file {str(file)!r} to import")
    with open_sessions() as sessions:
        made = _from_context(sessions, context, again) if file is None else _from_file(sessions, file, again)
    print(made.session_id)


def _from_file(sessions: SessionService, file: Path, again: bool) -> Session:
    from cleveragents.sessions.document import IMPORT_LIMIT, read_document
    from cleveragents.values.json import load_json

    document: Any = _content(file)
    size = len(document)
    with _named(file), _steps("importing", 4, shown=size >= _MANY_BYTES) as step:
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
    from cleveragents.integrations.contexts import session_of_context

    context = ContextManager.open(str(name), on_damage=lambda what: say(f"warning: {what}"))
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


@click.command(epilog="Example: cleveragents session verify holidays.json")
@click.argument("what", metavar="ID|FILE", type=SessionId())
@format_option
def verify(what: str, format_: str) -> None:
    """Check all that is stored of a session, or an exported file: its checksum, and every field.

    What names a file that is there is taken for a file. Damage, or a wrong checksum, ends with exit code 5.
    """
    from cleveragents.sessions.document import read_document
    from cleveragents.sessions.open import open_sessions
    from cleveragents.sessions.session import Session

    file = Path(os.fsdecode(what.encode("utf-8", "surrogateescape")))  # typed_text, undone
    if file.is_file():
        with _named(file):
            document = read_document(_content(file))
            found = Session.from_document(document)
        facts = {"file": what, "session_id": found.session_id, "messages": found.message_count}
        facts["checksum"] = document["checksum"]
    elif any(character in what for character in "./\\"):
        raise SessionNotFoundError(f"there is no file {what!r} to verify")
    else:
        with open_sessions() as sessions:
            session_id = sessions.find(what)
            checksum = sessions.verify(session_id)
            facts = {"file": None, "session_id": session_id, "messages": sessions.count(session_id)}
        facts["checksum"] = checksum
    if format_ == "table":
        show_text(f"{facts['file'] or facts['session_id']} is whole: {facts['messages']} messages, {facts['checksum']}")
    else:
        show_json(facts)


def _content(file: Path) -> bytes:
    from cleveragents.disk.files import storage_errors
    from cleveragents.sessions.document import IMPORT_LIMIT

    if file == Path("-"):
        content = sys.stdin.buffer.read(IMPORT_LIMIT + 1)
    else:
        with storage_errors(file, "read"), file.open("rb") as stream:
            content = stream.read(IMPORT_LIMIT + 1)
    return content.removeprefix(b"\xef\xbb\xbf")


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """Have what is wrong with a document told with the name of its file."""
    try:
        yield
    except SessionImportError as error:
        raise type(error)(f"{typed_text(str(file))}: {error}") from None


@contextmanager
def _steps(what: str, count: int, *, shown: bool) -> Iterator[Callable[[str], None]]:
    """A function to be called when each of ``count`` steps begins; on a terminal a bar shows how far it is."""
    if not shown or not sys.stderr.isatty():
        yield lambda _step: None
        return
    with click.progressbar(length=count, label=what, file=sys.stderr, item_show_func=lambda step: step) as bar:
        begun = 0

        def begin(step: str) -> None:
            nonlocal begun
            bar.current_item = step
            bar.make_step(min(begun, 1))
            bar.render_progress()
            begun += 1

        yield begin
        bar.current_item = None
        bar.make_step(1)
        bar.render_progress()
