"""``….damaged``: what could not be read of a context's file and was set aside, beside that file. Only ever added to."""

from __future__ import annotations

from pathlib import Path

from cleveragents.disk.files import append_file


def damaged_file(path: Path) -> Path:
    """Where what was broken of the file ``path`` is kept."""
    return path.with_name(f"{path.name}.damaged")


def set_aside(path: Path, pieces: list[bytes]) -> None:
    """Keep ``pieces`` of the damaged file ``path``, each as a line; on disk when this returns."""
    append_file(damaged_file(path), b"".join(piece + b"\n" for piece in pieces))
