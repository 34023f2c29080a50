"""``messages.jsonl``: the conversation of one context, one message a line, only ever added to.

The functions here know the file, not the lock that guards it: who writes holds the lock.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cleveragents.contexts import damage
from cleveragents.contexts.message import ContextMessage, message_of_line
from cleveragents.contexts.set_aside import set_aside
from cleveragents.disk.files import open_file, storage_errors, write_all
from cleveragents.errors import InvalidValueError
from cleveragents.values.json import load_json

MESSAGES_FILE = "messages.jsonl"

MAX_LINE_BYTES = 64 * 2**20
"""The longest line that is read as a message, or stored as one: a neighbour's file may be one line without an end."""

_FIRST_BLOCK, _LARGEST_BLOCK = 8192, 4 * 2**20


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no message: where it begins, how many bytes it has without its line end, and the reason."""

    start: int
    size: int
    reason: str


@dataclass(slots=True)
class Reading:
    """What reading found: the messages, the lines that are none, and how the file ends."""

    messages: list[ContextMessage] = field(default_factory=list)
    count: int = 0
    """How many messages were found, of which who looks at one after the other keeps none."""
    bad_lines: list[BadLine] = field(default_factory=list)
    """Lines within the file that are no message."""
    torn: bytes = b""
    """What stands after the last line's end and is no message: a record that was broken off."""
    unfinished: bool = False
    """Whether the last message lacks its line end."""

    @property
    def nothing_readable(self) -> bool:
        """Whether there is something, and none of it is a message, nor the beginning of a first one."""
        if self.count or not (self.bad_lines or self.torn):
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
            return damage.bad_lines(MESSAGES_FILE, len(self.bad_lines), self.bad_lines[0].reason)
        return None


def read_all(path: Path) -> Reading:
    """Every message of the file. Raises ContextDamagedError when nothing in it can be read."""
    reading = Reading()
    reading.messages.extend(each_message(path, reading))
    return refuse_unreadable(path, reading)


def read_last(path: Path, count: int) -> Reading:
    """The last ``count`` messages, read from the end of the file backwards; what stands before is not looked at."""
    if count == 0:
        return Reading()
    return refuse_unreadable(path, look_at_end(path, count))


def look_at_end(path: Path, count: int = 1) -> Reading:
    """What stands at the end of the file, back to the last ``count`` messages, readable or not.

    Raises ContextDamagedError when a line there is longer than a message can be.
    """
    with _opened(path) as (descriptor, size):
        return _read_back(path, descriptor, size, count)


def each_message(path: Path, found: Reading, *, past_long_lines: bool = False) -> Iterator[ContextMessage]:
    """One message of the file after the other, as it is at the first; all else goes into ``found`` on the way.

    A line that is longer than a message can be is ContextDamagedError, without looking for its end, which may be
    gigabytes away, unless ``past_long_lines``.
    """
    for start, line, size, ended in each_line(path, past_long_lines=past_long_lines):
        message = _sort_in(found, start, line, size) if ended else _sort_in_tail(found, start, line, size)
        if message is not None:
            found.count += 1
            yield message


def each_line(path: Path, *, past_long_lines: bool) -> Iterator[tuple[int, bytes, int, bool]]:
    """Where each line begins, what is in it, its size and whether it ends; of one that is too long only the beginning.

    Neither content nor size has the line end. See ``each_message`` for ``past_long_lines``.
    """
    with _opened(path) as (descriptor, end), open(descriptor, "rb", closefd=False) as file:
        start = 0
        while start < end:
            beginning = file.readline(min(MAX_LINE_BYTES + 1, end - start))
            if not beginning:
                break  # another process cut off a torn line meanwhile
            last, size = beginning, len(beginning)
            if size > MAX_LINE_BYTES and not past_long_lines:
                raise damage.line_too_long(path, MAX_LINE_BYTES)
            while not last.endswith(b"\n") and start + size < end:
                last = file.readline(min(_LARGEST_BLOCK, end - start - size))
                if not last:
                    break
                size += len(last)
            ended = last.endswith(b"\n")
            yield start, beginning.removesuffix(b"\n"), size - ended, ended
            start += size


def append(path: Path, line: bytes) -> int:
    """Put ``line`` at the end of the file, on disk when this returns. The caller holds the context's lock.

    A torn last line is set aside first; its size in bytes is given back, 0 when there was none. Raises
    ContextDamagedError when nothing in the file can be read, InvalidValueError for a line that is too long to be read
    again, StorageError when the disk refuses; the file is then as it was.
    """
    if len(line) > MAX_LINE_BYTES:
        raise InvalidValueError(
            f"a message takes at most {MAX_LINE_BYTES // 2**20} MiB, and this one has {len(line):,}"
        )
    with storage_errors(path):
        try:
            descriptor = open_file(path, os.O_RDWR | os.O_APPEND, follow=False)
        except OSError as error:
            if error.errno != errno.ELOOP and path.is_file():
                raise  # it may be read, but not written to
            raise damage.unreadable(path, error) from error
        try:
            return _append(path, descriptor, line)
        finally:
            os.close(descriptor)


def _append(path: Path, descriptor: int, line: bytes) -> int:
    size = os.fstat(descriptor).st_size
    end = refuse_unreadable(path, _read_back(path, descriptor, size, 1))
    if end.unfinished:
        line = b"\n" + line
    if end.torn:
        set_aside(path, [end.torn, b"\n"])
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
    return len(end.torn)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[int, int]]:
    """A descriptor and the size of a file to read; not being able to read it is damage, never emptiness."""
    descriptor = -1
    try:
        descriptor = open_file(path, os.O_RDONLY, follow=False)
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


def _lines_back(path: Path, descriptor: int, size: int) -> Iterator[tuple[int, bytes]]:
    """First what stands after the last line end (often nothing), then every line, the last first; with its start."""
    kept, block = b"", _FIRST_BLOCK
    while size > 0:
        start = max(0, size - block)
        first, *lines = (_read(descriptor, start, size - start) + kept).split(b"\n")
        if max(map(len, (first, *lines))) > MAX_LINE_BYTES:
            raise damage.line_too_long(path, MAX_LINE_BYTES)
        position = start + len(first) + sum(len(line) + 1 for line in lines)
        for line in reversed(lines):
            position -= len(line)
            yield position, line
            position -= 1
        kept, size = first, start
        block = min(block * 2, _LARGEST_BLOCK)  # so that a long line is not joined again and again
    yield 0, kept


def _read_back(path: Path, descriptor: int, size: int, count: int) -> Reading:
    reading = Reading()
    lines = _lines_back(path, descriptor, size)
    start, line = next(lines)
    message = _sort_in_tail(reading, start, line, len(line))
    while True:
        if message is not None:
            reading.messages.append(message)
            reading.count += 1
        if reading.count >= count or (here := next(lines, None)) is None:
            break
        message = _sort_in(reading, *here, len(here[1]))
    reading.messages.reverse()
    reading.bad_lines.reverse()
    return reading


def _sort_in(reading: Reading, start: int, line: bytes, size: int) -> ContextMessage | None:
    if size > MAX_LINE_BYTES:
        reading.bad_lines.append(BadLine(start, size, damage.too_long(MAX_LINE_BYTES)))
        return None
    if not line.strip():
        return None
    try:
        return message_of_line(line)
    except InvalidValueError as error:
        reading.bad_lines.append(BadLine(start, size, str(error)))
        return None


def _sort_in_tail(reading: Reading, start: int, line: bytes, size: int) -> ContextMessage | None:
    if size > MAX_LINE_BYTES or not line.strip():
        return _sort_in(reading, start, line, size)
    try:
        message = message_of_line(line)
    except InvalidValueError:
        reading.torn = line
        return None
    reading.unfinished = True
    return message


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
        raise damage.no_message_readable(path, utf_16=_is_utf_16(path))
    return reading


def _is_utf_16(path: Path) -> bool:
    with _opened(path) as (descriptor, _):
        return _read(descriptor, 0, 2) in {b"\xff\xfe", b"\xfe\xff"}
