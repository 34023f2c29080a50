"""``context.json``: the state, the global context and the metadata of one context, replaced whole at each change."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cleveragents.contexts import damage
from cleveragents.contexts.message import parse_time
from cleveragents.disk.files import open_file, read_file
from cleveragents.errors import ContextError, InvalidValueError
from cleveragents.values.json import load_record
from cleveragents.values.times import time_text

STATE_FILE = "context.json"
VERSION = 1
SECTIONS = ("state", "global_context", "metadata")

MAX_BYTES = 64 * 2**20
"""The most that is read as a state, or stored as one: a neighbour's file may be of any size."""

_HEAD_BYTES = 64


@dataclass(slots=True)
class ContextState:
    """What ``context.json`` holds. ``revision`` counts its changes, 0 for a context just made.

    ``id`` tells a context from a later one of the same name.
    """

    id: str = field(default_factory=lambda: os.urandom(16).hex())
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    revision: int = 0
    state: dict[str, Any] = field(default_factory=dict)
    global_context: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)

    def as_bytes(self) -> bytes:
        """The file's content, laid out for people. Raises InvalidValueError when it is more than can be kept."""
        value = {
            "version": VERSION,
            "id": self.id,
            "created_at": time_text(self.created_at),
            "revision": self.revision,
            **{section: getattr(self, section) for section in SECTIONS},
        }
        content = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False).encode() + b"\n"
        if len(content) > MAX_BYTES:
            raise InvalidValueError(
                f"a context's state, global context and metadata take at most {MAX_BYTES // 2**20} MiB together"
            )
        return content


def read_state(path: Path) -> ContextState:
    """The file's content. Raises ContextDamagedError when it cannot be read, ContextError when it is too new."""
    try:
        if path.lstat().st_size > MAX_BYTES:
            raise damage.too_large(path, MAX_BYTES)
        return _state(load_record(read_file(path, MAX_BYTES, follow=False)))
    except OSError as error:
        raise damage.unreadable(path, error) from error
    except InvalidValueError as error:
        raise damage.state_unreadable(path, str(error)) from None
    except _NewerVersionError as error:
        raise ContextError(f"{path} was written by a newer version of cleveragents ({error}); use that one") from None


def fingerprint(path: Path) -> tuple[int, int, bytes] | None:
    """What tells cheaply that the file is the one it was: its size, its time, and its beginning, which holds the id.

    None when it cannot be read. Times are too coarse to do without the id: two files may be made within a tick.
    """
    try:
        descriptor = open_file(path, os.O_RDONLY, follow=False)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        return status.st_size, status.st_mtime_ns, os.read(descriptor, _HEAD_BYTES)
    except OSError:
        return None
    finally:
        os.close(descriptor)


class _NewerVersionError(Exception):
    """The file's version is beyond ours."""


def _state(value: Any) -> ContextState:
    if not isinstance(value, dict):
        raise InvalidValueError("not a JSON object")
    version = value.get("version")
    if type(version) is not int or version < 1:
        raise InvalidValueError(f"{version!r:.60} is no version", "version")
    if version > VERSION:
        raise _NewerVersionError(str(version))
    revision = value.get("revision")
    if type(revision) is not int or revision < 0:
        raise InvalidValueError("must be a whole number", "revision")
    identity = value.get("id", "")
    if not isinstance(identity, str):
        raise InvalidValueError("must be text", "id")
    sections = {section: _section(value, section) for section in SECTIONS}
    return ContextState(identity, parse_time(value.get("created_at"), "created_at"), revision, **sections)


def _section(value: Mapping[str, Any], section: str) -> dict[str, Any]:
    content = value.get(section)
    if not isinstance(content, dict):
        raise InvalidValueError("must be a JSON object", section)
    return content
