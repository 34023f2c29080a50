"""Export files of contexts and sessions: a JSON document laid out for people, written whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cleveragents.disk.files import create_file, replace_file, storage_errors
from cleveragents.errors import StorageError


def export_bytes(document: dict[str, Any]) -> bytes:
    """An export document as the content of a file, laid out for people."""
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False).encode() + b"\n"


def write_export(document: dict[str, Any], path: Path, *, overwrite: bool) -> None:
    """Write an export document to ``path``, whole or not at all; over a link, what it leads to.

    Raises StorageError when the disk refuses, for what is no file, and for one that is there unless ``overwrite``.
    """
    write_export_pieces([export_bytes(document)], path, overwrite=overwrite)


def write_export_pieces(pieces: Iterable[bytes], path: Path, *, overwrite: bool) -> None:
    """As ``write_export``, of a document that comes in pieces."""
    if path.is_dir():
        raise StorageError(f"cannot export to {path}: it is a folder; give a file name")
    if not path.parent.is_dir():
        raise StorageError(f"cannot export to {path}: there is no folder {path.parent}")
    with storage_errors(path):
        if not overwrite:
            try:
                create_file(path, pieces)
            except FileExistsError:
                raise StorageError(f"{path} exists already and is kept; use another name, or --force") from None
            return
        target = path.resolve()
        if target.exists() and not target.is_file():
            raise StorageError(f"cannot export to {path}: it is not a regular file")
        replace_file(target, pieces)
