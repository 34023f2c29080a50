"""The export document of a context: one JSON file with everything in it, which shows when it was changed.

Keys: ``format``, ``version``, ``name``, ``created_at``, ``state``, ``global_context``, ``metadata``, ``messages``
(oldest first, as in ``messages.jsonl``) and ``checksum``: ``sha256:`` and the digest of the rest in the form of
``values.canonical``, so that the order of keys, white space and line ends do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleveragents.contexts.message import ContextMessage, message_of, parse_time
from cleveragents.contexts.messages_file import MESSAGES_FILE
from cleveragents.contexts.state_file import SECTIONS, STATE_FILE, ContextState
from cleveragents.disk.files import read_file, storage_errors
from cleveragents.errors import ContextImportError, InvalidValueError
from cleveragents.values.canonical import checksum
from cleveragents.values.json import IMPORT_LIMIT, json_record, load_json
from cleveragents.values.times import time_text

FORMAT, VERSION = "cleveragents.context", 1

_KEYS = ("format", "version", "name", "created_at", *SECTIONS, "messages", "checksum")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything in a context at one moment, under the name it had."""

    name: str
    state: ContextState
    messages: list[ContextMessage]


def export_document(snapshot: Snapshot) -> dict[str, Any]:
    """The export document of ``snapshot``."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "name": snapshot.name,
        "created_at": time_text(snapshot.state.created_at),
        **{section: getattr(snapshot.state, section) for section in SECTIONS},
        "messages": [message.as_dict() for message in snapshot.messages],
    }
    # What a hand-edited file brought in is put in order here, so that it is exported as it will be imported.
    document = _checked(document)
    return {**document, "checksum": checksum(document)}


def read_export(path: Path) -> Snapshot:
    """The content of an export file, checked in full. Raises ContextImportError naming what is wrong."""
    with storage_errors(path, "read"):
        content = read_file(path, IMPORT_LIMIT)
    return read_export_bytes(content, str(path))


def read_export_bytes(content: bytes, what: str) -> Snapshot:
    """As ``read_export``; ``what`` names the source in errors."""
    if len(content) > IMPORT_LIMIT:
        raise ContextImportError(f"{what} is larger than {IMPORT_LIMIT // 2**20} MiB, the most that is imported")
    try:
        return _snapshot(load_json(content.removeprefix(b"\xef\xbb\xbf")))
    except InvalidValueError as error:
        raise ContextImportError(f"{what} is not an export of a context that can be imported: {error}") from None


def files_of(snapshot: Snapshot) -> dict[str, bytes]:
    """The files of a new context that holds what ``snapshot`` does."""
    old = snapshot.state
    # A new context with an id of its own; revision 1, since all this was saved once, even where it is empty.
    new = ContextState(
        created_at=old.created_at,
        revision=1,
        state=old.state,
        global_context=old.global_context,
        metadata=old.metadata,
    )
    return {
        STATE_FILE: new.as_bytes(),
        MESSAGES_FILE: b"".join(message.as_line() for message in snapshot.messages),
    }


def _snapshot(value: Any) -> Snapshot:
    if not isinstance(value, dict):
        raise InvalidValueError("not a JSON object")
    if value.get("format") != FORMAT:
        raise InvalidValueError(f"must be {FORMAT!r}, not {value.get('format')!r:.60}", "format")
    _check_version(value.get("version"))
    missing, unknown = [key for key in _KEYS if key not in value], [key for key in value if key not in _KEYS]
    if missing or unknown:
        raise InvalidValueError(f"has no {missing[0]!r}" if missing else f"has an unknown key {unknown[0]!r:.60}")
    checked = _checked(value)
    given = checked.pop("checksum")
    if given != checksum(checked):
        raise InvalidValueError("the checksum does not match; the file was changed after it was exported")
    if not isinstance(value["name"], str):
        raise InvalidValueError("must be text", "name")
    for section in SECTIONS:
        if not isinstance(checked[section], dict):
            raise InvalidValueError("must be a JSON object", section)
    sections = {section: checked[section] for section in SECTIONS}
    state = ContextState(created_at=parse_time(checked["created_at"], "created_at"), **sections)
    return Snapshot(checked["name"], state, [_message(item, n) for n, item in enumerate(checked["messages"])])


def _checked(document: dict[str, Any]) -> dict[str, Any]:
    """``document`` with nesting counted as when it was stored: within each section, and each part of a message."""
    messages = document["messages"]
    if not isinstance(messages, list):
        raise InvalidValueError("must be a list", "messages")
    checked = json_record({**document, "messages": []})
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        if not isinstance(message, dict):
            raise InvalidValueError("not a JSON object", where)
        checked["messages"].append(json_record(message, where))
    return checked


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
