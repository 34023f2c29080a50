"""Setting aside what cannot be read of a context's files, so that the rest can be used. Nothing is thrown away."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from cleveragents.contexts.context_folder import ContextFolder
from cleveragents.contexts.damage import unreadable
from cleveragents.contexts.messages_file import set_aside, set_aside_file, sorted_out
from cleveragents.contexts.state_file import Document, read_document
from cleveragents.disk.files import read_file, replace_file, storage_errors
from cleveragents.errors import ContextDamagedError


def repair(folder: ContextFolder, *, really: bool) -> list[str]:
    """What was set aside, a sentence for each file; without ``really`` what would be, and nothing is changed.

    Who does it really holds the context's lock. Raises ContextDamagedError when a file cannot be opened, and
    StorageError when one cannot be written.
    """
    with storage_errors(folder.path, "repair"):
        if really:
            folder.remove_temporary_files()
        messages = _repair_messages(folder.messages, really=really)
        document = _repair_document(folder, really=really)
    return [sentence for sentence in (messages, document) if sentence]


def _repair_messages(path: Path, *, really: bool) -> str | None:
    data = _content(path)
    if data is None:
        if really:
            replace_file(path, b"")
        return f"{path.name} is missing: an empty one takes its place"
    reading = sorted_out(data)
    broken = [line for line, _ in reading.bad_lines] + ([reading.torn] if reading.torn else [])
    if not broken:
        return None
    if reading.nothing_readable:
        kept, broken, what = [], [data], "nothing in it can be read: all of it"
    else:
        gone = set(broken)
        kept = [line for line in data.split(b"\n") if line.strip() and line not in gone]
        what = f"{len(broken)} of {len(broken) + len(kept)} lines cannot be read: they"
    if really:
        set_aside(path, broken)
        replace_file(path, b"".join(line + b"\n" for line in kept))
    return f"{path.name}: {what} ({sum(map(len, broken))} bytes) moved to {set_aside_file(path).name}"


def _repair_document(folder: ContextFolder, *, really: bool) -> str | None:
    path = folder.document
    try:
        read_document(path)
    except ContextDamagedError:
        data = _content(path)
    else:
        return None
    if really:
        if data is not None:
            set_aside(path, [data])
        first = sorted_out(_content(folder.messages) or b"").messages[:1]
        created_at = first[0].timestamp if first else datetime.now(UTC)
        replace_file(path, Document(created_at=created_at, revision=1).as_bytes())
    if data is None:
        return f"{path.name} is missing: one with an empty state takes its place"
    return f"{path.name} cannot be read: all of it ({len(data)} bytes) moved to {set_aside_file(path).name}"


def _content(path: Path) -> bytes | None:
    try:
        return read_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unreadable(path, error) from error
