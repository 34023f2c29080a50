"""A session's export document as it arrives, from anybody and of any length: checked whole before it is used.

What it has many of is kept on disk meanwhile, in files without a name, which go with the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cleveragents.conversation.message import MessageRole, SessionMessage, stored_message
from cleveragents.conversation.usage import UsageEntry
from cleveragents.disk.files import storage_errors
from cleveragents.errors import SessionImportError
from cleveragents.sessions.document import (
    CHECKSUM,
    LISTS,
    Ledger,
    at,
    check_checksum,
    check_keys,
    check_known,
    check_version,
    entry_of,
    head_fields,
    is_of_version_before,
    message_of,
    moved_message,
    plain_item,
)
from cleveragents.sessions.document_pieces import BEFORE, LARGEST_VALUE, DocumentDigest, PagedSession
from cleveragents.sessions.session import Session, SessionSummary, check_sequence
from cleveragents.values.canonical import canonical_json
from cleveragents.values.json import dump_json, json_value, load_json
from cleveragents.values.json_members import decoded, json_members
from cleveragents.values.times import from_microseconds, microseconds

_SMALL = 2**20
"""Bytes up to which a list is kept in memory."""


@dataclass(frozen=True, slots=True)
class Received:
    """What a document holds that proved whole, and its checksum. Its session is read while the block lasts."""

    session: PagedSession
    checksum: str


@contextmanager
def received(pieces: Iterable[bytes]) -> Iterator[Received]:
    """The session of the export document whose text is ``pieces``, every field checked.

    Raises SessionImportError naming what is wrong, and StorageError when there is no room for it on the disk of
    temporary files.
    """
    from tempfile import gettempdir

    with storage_errors(Path(gettempdir())), _Reading(keep=True) as reading:
        yield reading.whole(pieces)


def check_document(pieces: Iterable[bytes]) -> tuple[SessionSummary, str]:
    """What the document whose text is ``pieces`` says of its session, and its checksum. Raises as ``received`` does."""
    from tempfile import gettempdir

    with storage_errors(Path(gettempdir())), _Reading(keep=False) as reading:
        whole = reading.whole(pieces)
        return whole.session.summary, whole.checksum


class _Lines:
    """JSON values kept in a file."""

    def __init__(self) -> None:
        from tempfile import SpooledTemporaryFile

        self._file = SpooledTemporaryFile(_SMALL)  # noqa: SIM115 - closed by its user

    def add(self, line: bytes) -> None:
        self._file.write(line + b"\n")

    def __iter__(self) -> Iterator[bytes]:
        self._file.seek(0)
        return (line.removesuffix(b"\n") for line in self._file)

    def close(self) -> None:
        # On a full disk what was not written yet is still not, which was told when it should have been.
        with suppress(OSError):
            self._file.close()


class _Reading:
    """What is known of a document while its members come in; its messages can be read afterwards with ``keep``."""

    def __init__(self, *, keep: bool) -> None:
        self._keep = keep
        self._head: dict[str, Any] = {}
        self._size = 0
        self._lists: list[str] = []
        self._digest: DocumentDigest | None = None
        self._ledger = Ledger()
        self._count = 0
        self._wrong: SessionImportError | None = None
        self._messages, self._canonical, self._entries = _Lines(), _Lines(), _Lines()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for lines in (self._messages, self._canonical, self._entries):
            lines.close()

    def whole(self, pieces: Iterable[bytes]) -> Received:
        """The session, when all of ``pieces`` was read and found right."""
        with at(""):
            for key, value in json_members(decoded(pieces), set(LISTS), LARGEST_VALUE):
                self._read(key, value)
        check_version(self._head.get("schema_version"))
        stated = self._head.get(CHECKSUM)
        if stated is not None:
            # With another key missing there is no saying what the checksum is of.
            check_keys([*self._head, *self._lists])
        check_checksum(stated, self._checksum)
        if self._wrong is not None:
            raise self._wrong
        return Received(self._session(), str(stated))

    def _read(self, key: str, value: Any) -> None:
        if key in LISTS:
            self._lists.append(key)
            (self._read_messages if key == "messages" else self._read_entries)(value)
            return
        check_known([key])
        self._head[key] = json_value(value, key)
        self._size += len(dump_json(self._head[key]))
        if self._size > LARGEST_VALUE:
            raise SessionImportError(f"the document has more than {LARGEST_VALUE:,} characters besides its lists")
        if key == "schema_version":
            check_version(value)

    def _read_messages(self, messages: Iterator[Any]) -> None:
        self._digest = DocumentDigest(self._head) if self._head.keys() >= BEFORE else None
        for index, item in enumerate(messages):
            self._count = index + 1
            place = f"messages[{index}]"
            plain = plain_item(item, place)
            (self._canonical if self._digest is None else self._digest).add(canonical_json(plain))
            with self._later(place):
                message = message_of(plain, place)
                check_sequence(message, index)
                if self._keep:
                    self._messages.add(_line(message))

    def _read_entries(self, entries: Iterator[Any]) -> None:
        for index, item in enumerate(entries):
            place = f"usage_entries[{index}]"
            plain = plain_item(item, place)
            self._entries.add(canonical_json(plain))
            with self._later(place):
                self._ledger.add(entry_of(plain, place))

    @contextmanager
    def _later(self, place: str) -> Iterator[None]:
        """Keep what is wrong in a list for the end: that the document was changed is the better reason."""
        try:
            with at(place):
                yield
        except SessionImportError as error:
            self._wrong = self._wrong or error

    def _checksum(self) -> str:
        head = {key: value for key, value in self._head.items() if key != CHECKSUM}
        digest = self._digest
        if digest is None:
            # In another order than ours, messages came before what they are hashed after.
            digest = DocumentDigest(head)
            for message in self._canonical:
                digest.add(message)
        return digest.checksum(head, self._entries)

    def _session(self) -> PagedSession:
        found = head_fields(self._head)
        with at(""):
            session = Session(**found)
        self._ledger.check(session.token_usage)
        return PagedSession(session.as_summary(self._count), self._read_back, self._read_back_entries)

    def _read_back(self) -> Iterator[SessionMessage]:
        messages = map(_message, self._messages)
        return map(moved_message, messages) if is_of_version_before(self._head) else messages

    def _read_back_entries(self) -> Iterator[UsageEntry]:
        return (entry_of(load_json(line), "usage_entries") for line in self._entries)


def _line(message: SessionMessage) -> bytes:
    """A message on one line, checked already."""
    rest = (message.content, message.tool_call_id, message.tool_calls, message.parts, message.agent, message.metadata)
    return dump_json([message.sequence, str(message.role), *rest, microseconds(message.created_at)]).encode()


def _message(line: bytes) -> SessionMessage:
    sequence, role, content, tool_call_id, tool_calls, parts, agent, metadata, created_at = load_json(line)
    role, created_at = MessageRole(role), from_microseconds(created_at)
    return stored_message(sequence, role, content, tool_call_id, tool_calls, parts, agent, metadata, created_at)
