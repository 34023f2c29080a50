"""Where a user's data is kept."""

from __future__ import annotations

import os
from pathlib import Path

from cleveragents.errors import StorageError


def data_home() -> Path:
    """The folder that holds all data: ``CLEVERAGENTS_HOME``, else the platform's folder for a user's data.

    Raises StorageError when neither is known; the current directory and ``/`` never stand in for it.
    """
    chosen = os.environ.get("CLEVERAGENTS_HOME")
    if chosen:
        try:
            return Path(chosen).expanduser().absolute()
        except (RuntimeError, OSError):
            raise StorageError(f"CLEVERAGENTS_HOME={chosen!r} cannot be resolved; give an absolute path") from None
    import platformdirs

    try:
        home = platformdirs.user_data_path("cleveragents", appauthor=False)
        # A container gives "/" as home to a user it does not know: no place for anybody's data.
        known = home.is_absolute() and not home.is_relative_to("/.local")
    except RuntimeError:
        known = False
    if not known:
        raise StorageError("there is no home folder to keep data in; set CLEVERAGENTS_HOME to a folder")
    return home
