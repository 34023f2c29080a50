"""``….damaged``: what could not be read of a context's file and was set aside, beside that file. Only ever added to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cleveragents.disk.files import append_file


def damaged_file(path: Path) -> Path:
    """Where what was broken of the file ``path`` is kept."""
    return path.with_name(f"{path.name}.damaged")


def set_aside(path: Path, pieces: Iterable[bytes]) -> None:
    """Keep ``pieces`` of the damaged file ``path``, as they are; on disk when this returns."""
    append_file(damaged_file(path), pieces)
