"""Every sentence about damage: what of a context cannot be read, what was set aside, and what to do about it.

Other modules find the damage; how it is told stands here. ``file`` is a file's name, ``path`` where it is, ``size`` is
in bytes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from cleveragents.errors import ContextDamagedError

# --- a file that cannot be used -------------------------------------------------------------------------


def unreadable(path: Path, error: OSError) -> ContextDamagedError:
    """The error for ``path``, which ``error`` kept from being read, with what helps in that case."""
    reason, advice = f"cannot be read: {error.strerror or error}", ""
    if error.errno == errno.ELOOP and not path.is_symlink():
        path, reason = path.parent, "is a link that leads nowhere"
        advice = "'cleveragents context delete' removes it"
    elif error.errno == errno.ELOOP:
        reason, advice = (
            "is a symbolic link, which is not followed within a context",
            "put the file itself in its place",
        )
    elif isinstance(error, FileNotFoundError):
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


def no_message_readable(path: Path, *, utf_16: bool) -> ContextDamagedError:
    """The error for a conversation in which there is something, and none of it is a message."""
    if utf_16:
        return ContextDamagedError(f"{path} is UTF-16 text, of which nothing can be read; save it as UTF-8")
    return ContextDamagedError(f"nothing in {path} can be read; 'cleveragents context repair' can set it aside")


def too_large(path: Path, limit: int) -> ContextDamagedError:
    """The error for a ``context.json`` that is larger than one can be."""
    return state_unreadable(path, f"it is larger than {limit // 2**20} MiB")


def line_too_long(path: Path, limit: int) -> ContextDamagedError:
    """The error for a conversation whose end is hidden by a line that is longer than a message can be."""
    return ContextDamagedError(f"a line of {path} is {too_long(limit)}; 'cleveragents context repair' can set it aside")


def too_long(limit: int) -> str:
    """Why a line is no message, which is longer than ``limit``."""
    return f"longer than {limit // 2**20} MiB"


def state_unreadable(path: Path, reason: str) -> ContextDamagedError:
    """The error for a ``context.json`` that is not what it should be."""
    return ContextDamagedError(f"{path} cannot be read: {reason}; 'cleveragents context repair' can set it aside")


# --- a conversation of which some can be read -----------------------------------------------------------


def nothing_readable(file: str) -> str:
    """What a list says of a conversation in which nothing can be read."""
    return f"nothing in {file} can be read"


def torn_last_line(file: str, size: int) -> str:
    """What is wrong with a conversation whose last line was broken off after ``size`` bytes."""
    return f"the last line of {file} is broken off ({size} bytes)"


def bad_lines(file: str, count: int, reason: str) -> str:
    """What is wrong with a conversation with ``count`` bad lines within it; ``reason`` is that of the first."""
    return f"{'1 line' if count == 1 else f'{count} lines'} of {file} cannot be read ({reason})"


def with_advice(problem: str) -> str:
    """One of the problems above as a reader of the conversation is told of it."""
    return f"{problem}; 'cleveragents context repair' sets aside what is broken"


def torn_last_line_with_advice(file: str, size: int, to: Path) -> str:
    """What a reader of the conversation is told of a last line that was broken off."""
    by = "the next message, or 'cleveragents context repair',"
    return f"{torn_last_line(file, size)}; {by} sets what is left of it aside in {to}"


def torn_last_line_set_aside(file: str, size: int, to: Path) -> str:
    """What is told when the next message is written after a line that was broken off, and nobody has read it before."""
    return f"the last line of {file} was broken off; what is left of it ({size} bytes) was set aside in {to}"


# --- what repair does -----------------------------------------------------------------------------------


def messages_missing(file: str) -> str:
    """There is no file for the conversation."""
    return f"{file} is missing: an empty one takes its place"


def all_messages_moved(file: str, size: int, to: Path) -> str:
    """No message can be read."""
    return f"{file}: nothing in it can be read: all of it ({size} bytes) moved to {to.name}"


def lines_moved(file: str, count: int, of: int, size: int, to: Path) -> str:
    """``count`` lines ``of`` so many are no messages."""
    return f"{file}: {count} of {of} lines cannot be read: they ({size} bytes) moved to {to.name}"


def state_missing(file: str) -> str:
    """There is no ``context.json``."""
    return f"{file} is missing: one with an empty state takes its place"


def state_moved(file: str, size: int, to: Path) -> str:
    """What is in ``context.json`` cannot be read."""
    return f"{file} cannot be read: all of it ({size} bytes) moved to {to.name}"


# --- whom it is told ------------------------------------------------------------------------------------


class Told:
    """Tells each finding about a context once: to ``listener``, without one as a warning in the log."""

    def __init__(self, listener: Callable[[str], object] | None) -> None:
        self.listener = listener
        self._already: set[str] = set()

    def tell(self, name: str, what: str) -> None:
        """Tell ``what`` of the context ``name``, unless that was told already."""
        if what not in self._already:
            self._already.add(what)
            self._say(name, what)

    def tell_torn(self, name: str, path: Path, size: int, to: Path) -> None:
        """Tell that the last line of the file ``path`` is broken off after ``size`` bytes."""
        self.tell(name, torn_last_line_with_advice(path.name, size, to))

    def tell_set_aside(self, name: str, path: Path, size: int, to: Path) -> None:
        """Tell that such a line was set aside, unless it was told of when it was read."""
        announced = torn_last_line_with_advice(path.name, size, to)
        if announced in self._already:
            self._already.remove(announced)  # the next such line is another one
        else:
            self._say(name, torn_last_line_set_aside(path.name, size, to))

    def forget(self) -> None:
        """Tell everything anew, for it is about another context."""
        self._already.clear()

    def _say(self, name: str, what: str) -> None:
        (self.listener or _log)(f"context {name!r}: {what}")


def _log(what: str) -> None:
    import logging

    logging.getLogger("cleveragents.contexts").warning("%s", what)
