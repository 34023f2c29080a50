"""``cleveragents session verify``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cleveragents.cli.kit.options import format_option, max_size_option
from cleveragents.cli.kit.output import show, show_json
from cleveragents.cli.kit.session_id import SessionId
from cleveragents.cli.kit.sessions import pass_sessions
from cleveragents.cli.session.document_file import opened
from cleveragents.errors import SessionNotFoundError

if TYPE_CHECKING:
    from cleveragents.sessions.service import SessionService


@click.command(epilog="Example: cleveragents session verify holidays.json")
@click.argument("what", metavar="ID|FILE", type=SessionId())
@max_size_option
@format_option
def verify(what: str, max_size: int | None, format_: str) -> None:
    """Check a stored session, or an exported file: its checksum, and every field.

    What names a file that is there is taken for a file. Damage, or a wrong checksum, ends with exit code 5.
    """
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
