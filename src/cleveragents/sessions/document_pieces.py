"""The export document of a session in pieces: its text, and its checksum, while messages come by."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from cleveragents.conversation.message import SessionMessage
from cleveragents.conversation.usage import UsageEntry
from cleveragents.errors import InvalidInputError, InvalidValueError, SessionExportError
from cleveragents.sessions.document import CHECKSUM, KEYS, entry_document, head_of, message_document
from cleveragents.sessions.session import SessionSummary
from cleveragents.values.canonical import canonical_json

LARGEST_VALUE = 256 * 2**20
"""Characters of the longest message that is written and read, and of all that is neither message nor usage entry."""

BEFORE = frozenset(key for key in KEYS if key < "messages") - {CHECKSUM}
"""The keys that stand before the messages in the canonical form; between them and the ledger, its end, is the rest."""


@dataclass(frozen=True, slots=True)
class PagedSession:
    """A session of any length: what it has many of is read anew, in order, each time it is asked for."""

    summary: SessionSummary
    messages: Callable[[], Iterator[SessionMessage]]
    usage_entries: Callable[[], Iterator[UsageEntry]]


class DocumentDigest:
    """The checksum of a document, made while its messages come by in canonical form."""

    def __init__(self, head: Mapping[str, Any]) -> None:
        """Begin with the keys BEFORE, which are in ``head``."""
        import hashlib

        self._hash = hashlib.sha256(_members(head, BEFORE) + b',"messages":[')
        self._separator = b""

    def add(self, canonical: bytes) -> None:
        """Count the next message."""
        self._hash.update(self._separator + canonical)
        self._separator = b","

    def checksum(self, head: Mapping[str, Any], entries: Iterable[bytes]) -> str:
        """The checksum of the document of the whole ``head``, the messages that came by, and ``entries``."""
        self._hash.update(b"]," + _members(head, head.keys() - BEFORE).removeprefix(b"{") + b',"usage_entries":[')
        self._separator = b""
        for entry in entries:
            self.add(entry)
        self._hash.update(b"]}")
        return f"sha256:{self._hash.hexdigest()}"


def _members(head: Mapping[str, Any], keys: Iterable[str]) -> bytes:
    return canonical_json({key: head[key] for key in keys}).removesuffix(b"}")


def document_pieces(session: PagedSession, written: Callable[[], object]) -> Iterator[bytes]:
    """The content of the export file, as ``disk.export_file.export_bytes`` lays it out, a message or less at a time.

    ``written`` is told of each message. Raises SessionExportError for what no document can hold.
    """
    try:
        yield from _pieces(session, written)
    except InvalidInputError as error:
        raise SessionExportError(f"session {session.summary.session_id} cannot be exported: {error}") from error


def _pieces(session: PagedSession, written: Callable[[], object]) -> Iterator[bytes]:
    found = {each.name: getattr(session.summary, each.name) for each in fields(session.summary)}
    head = head_of(found, session.messages())
    _laid_out(head, "", "what is neither message nor usage entry")
    digest = DocumentDigest(head)
    separator = "{"
    for key in KEYS:
        yield f'{separator}\n  "{key}": '.encode()
        separator = ","
        if key == "messages":
            messages = _counted(map(message_document, session.messages()), digest, written)
            yield from _list_pieces(key, messages)
        elif key == "usage_entries":
            yield from _list_pieces(key, map(entry_document, session.usage_entries()))
        elif key == CHECKSUM:
            entries = map(canonical_json, map(entry_document, session.usage_entries()))
            yield f'"{digest.checksum(head, entries)}"\n}}\n'.encode()
        else:
            yield _laid_out(head[key], "  ", key)


def _counted(
    messages: Iterable[dict[str, Any]], digest: DocumentDigest, written: Callable[[], object]
) -> Iterator[dict[str, Any]]:
    for message in messages:
        digest.add(canonical_json(message))
        yield message
        written()


def _list_pieces(name: str, items: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    index = -1
    for index, item in enumerate(items):
        yield (b",\n    " if index else b"[\n    ") + _laid_out(item, "    ", f"{name}[{index}]")
    yield b"[]" if index < 0 else b"\n  ]"


def _laid_out(value: Any, margin: str, place: str) -> bytes:
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False).replace("\n", f"\n{margin}")
    if len(text) > LARGEST_VALUE:
        raise InvalidValueError(f"more than {LARGEST_VALUE:,} characters, which nobody would read back", place)
    return text.encode()
