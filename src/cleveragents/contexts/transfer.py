"""The export document of a context: one JSON file with everything in it, which shows when it was changed.

Keys: ``format``, ``version``, ``name``, ``created_at``, ``state``, ``global_context``, ``metadata``, ``messages``
(oldest first, as in ``messages.jsonl``) and ``checksum``: ``sha256:`` and the digest of the rest in the form of
``values.canonical``, so that the order of keys, white space and line ends do not matter.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from cleveragents.contexts.message import ContextMessage, message_of, parse_time
from cleveragents.contexts.messages_file import MAX_LINE_BYTES, MESSAGES_FILE
from cleveragents.contexts.state_file import SECTIONS, STATE_FILE, ContextState
from cleveragents.disk.files import open_file, storage_errors
from cleveragents.errors import ContextImportError, InvalidValueError
from cleveragents.values.canonical import canonical_json
from cleveragents.values.json import json_record
from cleveragents.values.json_members import decoded, json_members
from cleveragents.values.times import time_text

Files = dict[str, bytes | Iterable[bytes]]
"""What is in each file of a context, by its name; in one piece, or in many that are read once."""

FORMAT, VERSION = "cleveragents.context", 1

# The members that stand before the messages when the keys are in order.
_BEFORE = {"created_at", "format", "global_context"}
_BLOCK = 2**20
_KEYS = ("format", "version", "name", "created_at", *SECTIONS, "messages", "checksum")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything in a context at one moment, under the name it had."""

    name: str
    state: ContextState
    messages: list[ContextMessage]


def export_document(snapshot: Snapshot) -> dict[str, Any]:
    """The export document of ``snapshot``."""
    head = _head(snapshot.name, snapshot.state)
    digest = _Digest(head)
    messages = [digest.add(number, message.as_dict()) for number, message in enumerate(snapshot.messages)]
    return {**head, "messages": messages, "checksum": digest.checksum(head)}


def export_pieces(name: str, state: ContextState, messages: Iterable[ContextMessage]) -> Iterator[bytes]:
    """The content of an export file, as ``disk.export_file.export_bytes`` lays it out, while ``messages`` come in."""
    head = _head(name, state)
    digest = _Digest(head)
    yield _laid_out(head).removesuffix("\n}").encode() + b',\n  "messages": ['
    number = 0
    for number, message in enumerate(messages, 1):
        text = _laid_out(digest.add(number - 1, message.as_dict())).replace("\n", "\n    ")
        yield f"{',' if number > 1 else ''}\n    {text}".encode()
    end = "\n  ]" if number else "]"
    yield f'{end},\n  "checksum": "{digest.checksum(head)}"\n}}\n'.encode()


@contextmanager
def imported(source: Path | BinaryIO, folder: Path, max_size: int | None = None) -> Iterator[tuple[str, Files]]:
    """The name in an export, checked in full, and the files of a new context that holds what it does.

    ``source`` is a file or standard input, ``folder`` the one the context shall be in. Raises ContextImportError naming
    what is wrong, or when there is more than ``max_size`` bytes, without one than the disk has room for.
    """
    what = str(source) if isinstance(source, Path) else "standard input"
    with ExitStack() as stack:
        if isinstance(source, Path):
            with storage_errors(source, "read"):
                source = stack.enter_context(os.fdopen(open_file(source, os.O_RDONLY), "rb"))
        stack.enter_context(storage_errors(folder))
        lines = stack.enter_context(_kept_for(folder))
        there = next(parent for parent in (folder, *folder.absolute().parents) if parent.is_dir())
        try:
            room = shutil.disk_usage(there).free
            limit, reason = (room, "the disk has room for") if max_size is None else (max_size, "was allowed")
            text = decoded(_blocks(source, what, limit, reason))
            name, state = _Import(lines).read(json_members(text, {"messages"}, MAX_LINE_BYTES))
        except InvalidValueError as error:
            raise ContextImportError(f"{what} is not an export of a context that can be imported: {error}") from None
        yield name, _new_files(state, _from_the_start(lines))


@contextmanager
def copied(state: ContextState, messages: Iterable[ContextMessage], folder: Path) -> Iterator[Files]:
    """The files of a new context with ``state`` and ``messages``, which are all read before one is made."""
    with storage_errors(folder), _kept_for(folder) as lines:
        lines.writelines(message.as_line() for message in messages)
        yield _new_files(state, _from_the_start(lines))


def _kept_for(folder: Path) -> IO[bytes]:
    """A file without a name for what goes into ``folder``: on its disk, where it is there and may be written to."""
    from tempfile import TemporaryFile

    return TemporaryFile(dir=folder if folder.is_dir() and os.access(folder, os.W_OK) else None)


def _from_the_start(file: IO[bytes]) -> Iterator[bytes]:
    file.seek(0)
    return iter(partial(file.read, _BLOCK), b"")


def files_of(snapshot: Snapshot) -> Files:
    """The files of a new context that holds what ``snapshot`` does."""
    return _new_files(snapshot.state, (message.as_line() for message in snapshot.messages))


def _new_files(old: ContextState, lines: Iterable[bytes]) -> Files:
    """The files of a new context with the state of an ``old`` one, and ``lines`` as its conversation."""
    # A new context with an id of its own; revision 1, since all this was saved once, even where it is empty.
    new = ContextState(
        created_at=old.created_at,
        revision=1,
        state=old.state,
        global_context=old.global_context,
        metadata=old.metadata,
    )
    return {STATE_FILE: new.as_bytes(), MESSAGES_FILE: lines}


def _head(name: str, state: ContextState) -> dict[str, Any]:
    """All of an export document but its messages and its checksum."""
    # What a hand-edited file brought in is put in order here, so that it is exported as it will be imported.
    return json_record(
        {
            "format": FORMAT,
            "version": VERSION,
            "name": name,
            "created_at": time_text(state.created_at),
            **{section: getattr(state, section) for section in SECTIONS},
        }
    )


def _laid_out(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)


def _blocks(source: BinaryIO, what: str, limit: int, reason: str) -> Iterator[bytes]:
    """What is in ``source``, in pieces. Raises ContextImportError when there is more than ``limit``, in bytes."""
    size = 0
    while True:
        with storage_errors(Path(what), "read"):
            piece = source.read(_BLOCK)
        if not piece:
            return
        size += len(piece)
        if size > limit:
            raise ContextImportError(f"{what} is larger than {reason} ({limit:,} bytes)")
        yield piece


class _Digest:
    """The checksum of a document, made while its messages come by.

    In the canonical form some members stand before the messages and the rest after them. When not all of the former
    are known yet, what the messages are hashed as is kept in a file meanwhile.
    """

    def __init__(self, head: Mapping[str, Any]) -> None:
        self._hash = hashlib.sha256()
        self._later: BinaryIO | None = None
        if head.keys() >= _BEFORE:
            self._begin(head)
        else:
            from tempfile import TemporaryFile

            self._later = cast("BinaryIO", TemporaryFile())  # noqa: SIM115 - closed by checksum, or by being forgotten

    def add(self, number: int, message: Any) -> dict[str, Any]:
        """``message``, checked, as it is stored. Raises InvalidValueError."""
        where = f"messages[{number}]"
        if not isinstance(message, dict):
            raise InvalidValueError("not a JSON object", where)
        # Nesting is counted as when it was stored: within each part of a message.
        checked = json_record(message, where)
        canonical = (b"," if number else b"") + canonical_json(checked)
        if self._later is None:
            self._hash.update(canonical)
        else:
            self._later.write(canonical)
        return checked

    def checksum(self, head: Mapping[str, Any]) -> str:
        """The checksum of the document that is all of ``head`` and the messages that came by."""
        if self._later is not None:
            self._begin(head)
            with self._later as later:
                later.seek(0)
                for block in iter(partial(later.read, _BLOCK), b""):
                    self._hash.update(block)
        rest = {key: value for key, value in head.items() if key not in _BEFORE}
        self._hash.update(b"]," + canonical_json(rest)[1:])
        return f"sha256:{self._hash.hexdigest()}"

    def _begin(self, head: Mapping[str, Any]) -> None:
        before = canonical_json({key: head[key] for key in _BEFORE})
        self._hash.update(before[:-1] + b',"messages":[')


class _Import:
    """What is known of an export document while its members come in; the messages go on as ``lines``."""

    def __init__(self, lines: IO[bytes]) -> None:
        self._lines = lines
        self._head: dict[str, Any] = {}
        self._digest: _Digest | None = None
        self._wrong: InvalidValueError | None = None

    def read(self, members: Iterator[tuple[str, Any]]) -> tuple[str, ContextState]:
        """The name and the state in the document of ``members``. Raises InvalidValueError for one that is not whole."""
        for key, value in members:
            if key == "messages":
                self._read_messages(value)
            else:
                self._head[key] = value
        head, digest = self._head, self._digest
        _check_kind(head)
        given = [*head, *(["messages"] if digest is not None else [])]
        missing, unknown = [key for key in _KEYS if key not in given], [key for key in given if key not in _KEYS]
        if missing or unknown or digest is None:
            raise InvalidValueError(f"has no {missing[0]!r}" if missing else f"has an unknown key {unknown[0]!r:.60}")
        checked = json_record(head)
        if checked.pop("checksum") != digest.checksum(checked):
            raise InvalidValueError("the checksum does not match; the file was changed after it was exported")
        if not isinstance(head["name"], str):
            raise InvalidValueError("must be text", "name")
        for section in SECTIONS:
            if not isinstance(checked[section], dict):
                raise InvalidValueError("must be a JSON object", section)
        created_at = parse_time(checked["created_at"], "created_at")
        if self._wrong is not None:
            raise self._wrong
        return checked["name"], ContextState(
            created_at=created_at, **{section: checked[section] for section in SECTIONS}
        )

    def _read_messages(self, messages: Iterator[Any]) -> None:
        if {"format", "version"} <= self._head.keys():
            _check_kind(self._head)
        self._digest = digest = _Digest(json_record(self._head))
        for number, message in enumerate(messages):
            checked = digest.add(number, message)
            # That the file was changed is the better reason, which is known at the end.
            if self._wrong is None:
                try:
                    self._lines.write(_message(checked, number).as_line())
                except InvalidValueError as error:
                    self._wrong = error


def _check_kind(head: Mapping[str, Any]) -> None:
    if head.get("format") != FORMAT:
        raise InvalidValueError(f"must be {FORMAT!r}, not {head.get('format')!r:.60}", "format")
    _check_version(head.get("version"))


def _check_version(version: Any) -> None:
    if type(version) is not int or version < 1:
        raise InvalidValueError(f"{version!r:.60} is no version", "version")
    if version > VERSION:
        raise InvalidValueError(f"{version} was made by a newer version of cleveragents", "version")


def _message(value: Any, number: int) -> ContextMessage:
    where = f"messages[{number}]"
    try:
        return message_of(value)
    except InvalidValueError as error:
        raise InvalidValueError(error.reason, f"{where}.{error.path}" if error.path else where) from None
