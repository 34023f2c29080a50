"""Setting aside what cannot be read of a context's files, so that the rest can be used. Nothing is thrown away."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from cleveragents.contexts import damage
from cleveragents.contexts.context_folder import ContextFolder
from cleveragents.contexts.messages_file import sorted_out
from cleveragents.contexts.set_aside import damaged_file, set_aside
from cleveragents.contexts.state_file import ContextState, read_state
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
        messages = _repair_messages(folder.messages_file, really=really)
        state = _repair_state(folder, really=really)
    return [sentence for sentence in (messages, state) if sentence]


def _repair_messages(path: Path, *, really: bool) -> str | None:
    data = _content(path)
    if data is None:
        if really:
            replace_file(path, b"")
        return damage.messages_missing(path.name)
    reading = sorted_out(data)
    broken = [line for line, _ in reading.bad_lines] + ([reading.torn] if reading.torn else [])
    if not broken:
        return None
    if reading.nothing_readable:
        kept, broken = [], [data]
        what = damage.all_messages_moved(path.name, len(data), damaged_file(path))
    else:
        gone = set(broken)
        kept = [line for line in data.split(b"\n") if line.strip() and line not in gone]
        size = sum(map(len, broken))
        what = damage.lines_moved(path.name, len(broken), len(broken) + len(kept), size, damaged_file(path))
    if really:
        set_aside(path, broken)
        replace_file(path, b"".join(line + b"\n" for line in kept))
    return what


def _repair_state(folder: ContextFolder, *, really: bool) -> str | None:
    path = folder.state_file
    try:
        read_state(path)
    except ContextDamagedError:
        data = _content(path)
    else:
        return None
    if really:
        if data is not None:
            set_aside(path, [data])
        first = sorted_out(_content(folder.messages_file) or b"").messages[:1]
        created_at = first[0].timestamp if first else datetime.now(UTC)
        replace_file(path, ContextState(created_at=created_at, revision=1).as_bytes())
    if data is None:
        return damage.state_missing(path.name)
    return damage.state_moved(path.name, len(data), damaged_file(path))


def _content(path: Path) -> bytes | None:
    try:
        return read_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise damage.unreadable(path, error) from error
