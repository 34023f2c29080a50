"""``messages.jsonl``: the conversation of one context, one message a line, only ever added to.

The functions here know the file, not the lock that guards it: who writes holds the lock.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cleveragents.contexts import damage
from cleveragents.contexts.message import ContextMessage, message_of_line
from cleveragents.contexts.set_aside import damaged_file, set_aside
from cleveragents.disk.files import open_file, storage_errors, write_all
from cleveragents.errors import InvalidValueError
from cleveragents.values.json import load_json

MESSAGES_FILE = "messages.jsonl"

_FIRST_BLOCK = 8192


@dataclass(slots=True)
class Reading:
    """What reading found: the messages, the lines that are none, and how the file ends."""

    messages: list[ContextMessage] = field(default_factory=list)
    bad_lines: list[tuple[bytes, str]] = field(default_factory=list)
    """Lines within the file that are no message, each with the reason."""
    torn: bytes = b""
    """What stands after the last line's end and is no message: a record that was broken off."""
    unfinished: bool = False
    """Whether the last message lacks its line end."""

    @property
    def nothing_readable(self) -> bool:
        """Whether there is something, and none of it is a message, nor the beginning of a first one."""
        if self.messages or not (self.bad_lines or self.torn):
            return False
        return bool(self.bad_lines) or not _begins_a_record(self.torn)

    @property
    def problem(self) -> str | None:
        """What is wrong with the file, in words; None when nothing is."""
        if self.nothing_readable:
            return damage.nothing_readable(MESSAGES_FILE)
        if self.torn:
            return damage.torn_last_line(MESSAGES_FILE, len(self.torn))
        if self.bad_lines:
            return damage.bad_lines(MESSAGES_FILE, len(self.bad_lines), self.bad_lines[0][1])
        return None


def read_all(path: Path) -> Reading:
    """Every message of the file. Raises ContextDamagedError when nothing in it can be read."""
    with _opened(path) as (descriptor, size):
        data = _read(descriptor, 0, size)
    return refuse_unreadable(path, sorted_out(data))


def read_last(path: Path, count: int) -> Reading:
    """The last ``count`` messages, read from the end of the file backwards; what stands before is not looked at."""
    if count == 0:
        return Reading()
    return refuse_unreadable(path, look_at_end(path, count))


def look_at_end(path: Path, count: int = 1) -> Reading:
    """What stands at the end of the file, back to the last ``count`` messages, readable or not."""
    with _opened(path) as (descriptor, size):
        return _read_back(descriptor, size, count)


def sorted_out(data: bytes) -> Reading:
    """What ``data``, the content of such a file, holds: readable or not."""
    reading = Reading()
    *lines, tail = data.split(b"\n")
    for line in lines:
        _sort_in(reading, line)
    _sort_in_tail(reading, tail)
    return reading


def append(path: Path, line: bytes) -> str | None:
    """Put ``line`` at the end of the file, on disk when this returns. The caller holds the context's lock.

    A torn last line is set aside first, and what was done is told. Raises ContextDamagedError when nothing in the
    file can be read, StorageError when the disk refuses; the file is then as it was.
    """
    with storage_errors(path):
        try:
            descriptor = open_file(path, os.O_RDWR | os.O_APPEND)
        except OSError as error:
            if path.is_file():
                raise  # it may be read, but not written to
            raise damage.unreadable(path, error) from error
        try:
            return _append(path, descriptor, line)
        finally:
            os.close(descriptor)


def _append(path: Path, descriptor: int, line: bytes) -> str | None:
    size, told = os.fstat(descriptor).st_size, None
    end = refuse_unreadable(path, _read_back(descriptor, size, 1))
    if end.unfinished:
        line = b"\n" + line
    if end.torn:
        set_aside(path, [end.torn])
        told = damage.torn_last_line_set_aside(path.name, len(end.torn), damaged_file(path))
        size -= len(end.torn)
        os.ftruncate(descriptor, size)
    try:
        write_all(descriptor, line)
        os.fsync(descriptor)
    except BaseException:
        # Half a line would be found and set aside by the next writer; better that it is not there.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, size)
            os.fsync(descriptor)
        raise
    return told


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[int, int]]:
    """A descriptor and the size of a file to read; not being able to read it is damage, never emptiness."""
    descriptor = -1
    try:
        descriptor = open_file(path, os.O_RDONLY)
        yield descriptor, os.fstat(descriptor).st_size
    except OSError as error:
        raise damage.unreadable(path, error) from error
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _read(descriptor: int, start: int, count: int) -> bytes:
    os.lseek(descriptor, start, os.SEEK_SET)
    pieces = []
    while count > 0:
        piece = os.read(descriptor, count)
        if not piece:
            break  # another process cut off a torn line meanwhile
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


def _lines_back(descriptor: int, size: int) -> Iterator[bytes]:
    """First what stands after the last line end (often nothing), then every line, the last first."""
    kept, block = b"", _FIRST_BLOCK
    while size > 0:
        start = max(0, size - block)
        first, *lines = (_read(descriptor, start, size - start) + kept).split(b"\n")
        yield from reversed(lines)
        kept, size = first, start
        block *= 2  # so that a very long line is not joined again and again
    yield kept


def _read_back(descriptor: int, size: int, count: int) -> Reading:
    reading = Reading()
    lines = _lines_back(descriptor, size)
    _sort_in_tail(reading, next(lines))
    for line in lines:
        if len(reading.messages) >= count:
            break
        _sort_in(reading, line)
    reading.messages.reverse()
    reading.bad_lines.reverse()
    return reading


def _sort_in(reading: Reading, line: bytes) -> None:
    if not line.strip():
        return
    try:
        reading.messages.append(message_of_line(line))
    except InvalidValueError as error:
        reading.bad_lines.append((line, str(error)))


def _sort_in_tail(reading: Reading, tail: bytes) -> None:
    if not tail.strip():
        return
    try:
        reading.messages.append(message_of_line(tail))
        reading.unfinished = True
    except InvalidValueError:
        reading.torn = tail


def _begins_a_record(tail: bytes) -> bool:
    """Whether ``tail`` is the beginning of a stored message, and not a file of another kind."""
    if not tail.startswith(b"{") or b"\0" in tail:
        return False
    try:
        load_json(tail)
    except InvalidValueError:
        return True
    return False


def refuse_unreadable(path: Path, reading: Reading) -> Reading:
    """``reading``, unless nothing in the file could be read: ContextDamagedError."""
    if reading.nothing_readable:
        raise damage.no_message_readable(path)
    return reading
