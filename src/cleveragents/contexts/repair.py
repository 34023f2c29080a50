"""Setting aside what cannot be read of a context's files, so that the rest can be used. Nothing is thrown away."""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from datetime import UTC, datetime
from pathlib import Path

from cleveragents.contexts import damage
from cleveragents.contexts.context_folder import ContextFolder
from cleveragents.contexts.messages_file import Reading, each_line, each_message
from cleveragents.contexts.set_aside import damaged_file, set_aside
from cleveragents.contexts.state_file import ContextState, read_state
from cleveragents.disk.files import open_file, replace_file, storage_errors
from cleveragents.errors import ContextDamagedError

_BLOCK = 2**20


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
    reading, lines, size = Reading(), 0, 0
    try:
        for _ in each_message(path, reading, past_long_lines=True):
            pass
        size = path.stat().st_size
    except (ContextDamagedError, FileNotFoundError):
        if os.path.lexists(path):
            raise
        if really:
            replace_file(path, b"")
        return damage.messages_missing(path.name)
    broken = {line.start: line.size for line in reading.bad_lines}
    if reading.torn:
        broken[size - len(reading.torn)] = len(reading.torn)
    if not broken:
        return None
    if reading.nothing_readable:
        broken = {0: size}
        what = damage.all_messages_moved(path.name, size, damaged_file(path))
    else:
        lines, moved = len(broken) + reading.count, sum(broken.values())
        what = damage.lines_moved(path.name, len(broken), lines, moved, damaged_file(path))
    if really:
        for start, length in sorted(broken.items()):
            set_aside(path, _piece(path, start, length))
        replace_file(path, _readable_lines(path, broken) if reading.count else b"")
    return what


def _readable_lines(path: Path, broken: Container[int]) -> Iterator[bytes]:
    for start, line, _, _ in each_line(path, past_long_lines=True):
        if line.strip() and start not in broken:
            yield line + b"\n"


def _piece(path: Path, start: int, size: int) -> Iterator[bytes]:
    """A part of the file ``path``, in blocks, as a line."""
    with os.fdopen(open_file(path, os.O_RDONLY, follow=False), "rb") as file:
        file.seek(start)
        while size > 0 and (block := file.read(min(size, _BLOCK))):
            yield block
            size -= len(block)
    yield b"\n"


def _repair_state(folder: ContextFolder, *, really: bool) -> str | None:
    path = folder.state_file
    try:
        read_state(path)
    except ContextDamagedError:
        size = _size(path)
    else:
        return None
    if really:
        if size is not None:
            set_aside(path, _piece(path, 0, size))
        first = next(each_message(folder.messages_file, Reading(), past_long_lines=True), None)
        created_at = first.timestamp if first else datetime.now(UTC)
        replace_file(path, ContextState(created_at=created_at, revision=1).as_bytes())
    if size is None:
        return damage.state_missing(path.name)
    return damage.state_moved(path.name, size, damaged_file(path))


def _size(path: Path) -> int | None:
    """How large a file is that can be read; None when there is none."""
    try:
        with os.fdopen(open_file(path, os.O_RDONLY, follow=False), "rb") as file:
            return os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return None
    except OSError as error:
        raise damage.unreadable(path, error) from error
