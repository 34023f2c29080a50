"""What to say, and to advise, when a file of a context cannot be opened or read."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from cleveragents.errors import ContextDamagedError


def unreadable(path: Path, error: OSError) -> ContextDamagedError:
    """The error for ``path``, which ``error`` kept from being read, with what helps in that case."""
    reason, advice = f"cannot be read: {error.strerror or error}", ""
    if isinstance(error, FileNotFoundError):
        if not path.parent.is_dir():
            path, reason = path.parent, "is a link that leads nowhere"
            advice = "'cleveragents context delete' removes it"
        else:
            reason, advice = "is missing", "'cleveragents context repair' makes a new one"
    elif error.errno in {errno.EACCES, errno.EPERM}:
        advice = "check its permissions and those of its folder"
    elif os.path.lexists(path) and not path.is_file():
        reason = "is not a regular file"
        advice = "move it away, then 'cleveragents context repair' makes a new one"
    return ContextDamagedError(f"{path} {reason}{advice and '; '}{advice}")
