"""What a process that this one starts sees of its environment variables."""

from __future__ import annotations

import os

PASSED_ON = ("HOME", "LANG", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER")
"""The variables, and all that start with ``LC_``, which a child is handed; the others may hold keys."""


def environment_of_children() -> dict[str, str]:
    """The environment of a process that runs what this package cannot vouch for."""
    return {name: text for name, text in os.environ.items() if name in PASSED_ON or name.startswith("LC_")}
