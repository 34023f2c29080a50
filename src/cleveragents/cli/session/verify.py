"""``cleveragents session verify``."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cleveragents.cli.kit.options import format_option, max_size_option
from cleveragents.cli.kit.output import show, show_json
from cleveragents.cli.kit.session_id import SessionId
from cleveragents.cli.kit.sessions import pass_sessions
from cleveragents.cli.session.document_file import opened
from cleveragents.errors import SessionDamagedError, SessionNotFoundError

if TYPE_CHECKING:
    from cleveragents.sessions.service import SessionService
    from cleveragents.sessions.session import SessionSummary

_PAGE = 200


@click.command(epilog="Example: cleveragents session verify holidays.json")
@click.argument("what", metavar="ID|FILE", type=SessionId(), required=False)
@click.option("--all", "all_", is_flag=True, help="Check every stored session, and that no row is without one.")
@max_size_option
@format_option
def verify(what: str | None, all_: bool, max_size: int | None, format_: str) -> None:
    """Check a stored session, or an exported file: its checksum, and every field.

    What names a file that is there is taken for a file. Damage, or a wrong checksum, ends with exit code 5.
    """
    if all_ == (what is not None):
        raise click.UsageError("name a session or a file, or give --all")
    if what is None:
        _verify_all(format_)
        return
    file = Path(os.fsdecode(what.encode("utf-8", "surrogateescape")))  # typed_text, undone
    if file.is_file():
        found = _whole_file(file, what, max_size)
    elif any(character in what for character in "./\\"):
        raise SessionNotFoundError(f"there is no file {what!r} to verify")
    else:
        found = _whole_session(what)
    if format_ == "table":
        show(f"{found['file'] or found['session_id']} is whole: {found['messages']} messages, {found['checksum']}")
    else:
        show_json(found)


@pass_sessions
def _verify_all(sessions: SessionService, format_: str) -> None:
    """Check each session; those that are damaged are named, and cost the others nothing."""
    from cleveragents.sessions.open import open_database
    from cleveragents.sessions.sql.database import orphans_told

    whole, faults = 0, []
    last: SessionSummary | None = None
    while page := sessions.list(limit=_PAGE, after=last):
        for summary in page:
            try:
                sessions.verify(summary.session_id)
                whole += 1
            except SessionDamagedError as error:
                faults.append(str(error))
            except SessionNotFoundError:
                pass  # deleted meanwhile
        last = page[-1]
    with closing(open_database()) as database:
        if orphans := orphans_told(database):
            faults.append(f"{database.name} has rows without a session: {orphans}; another program left them")
    if format_ == "table":
        show(f"{whole} sessions are whole; {len(faults)} faults" if faults else f"all {whole} sessions are whole")
    else:
        show_json({"whole": whole, "faults": faults})
    if faults:
        raise SessionDamagedError("\n".join(faults))


def _whole_file(file: Path, name: str, max_size: int | None) -> dict[str, Any]:
    from cleveragents.sessions.received import check_document

    with opened(file, max_size) as pieces:
        summary, checksum = check_document(pieces)
    return _facts(name, summary.session_id, summary.message_count, checksum)


@pass_sessions
def _whole_session(sessions: SessionService, id_: str) -> dict[str, Any]:
    session_id = sessions.find(id_)
    checksum = sessions.verify(session_id)
    return _facts(None, session_id, sessions.count(session_id), checksum)


def _facts(file: str | None, session_id: str, messages: int, checksum: str) -> dict[str, Any]:
    return {"file": file, "session_id": session_id, "messages": messages, "checksum": checksum}
