"""Locks between processes and threads that end with their holder: advisory locks on files of their own.

The locking itself is filelock's ``lock_descriptor``, on every system; the waiting is ours. With filelock's lock objects
in its place every test passed, but a lock took ten times as long (0.35 ms more, which is more than all else in an
append but its fsync), and four writers of one context up to three times. Their pause between two looks does not grow,
so waiting is either late or costly, and what ``held_if_there`` does they cannot: lock a file that may only be read, and
make none.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from cleveragents.disk.files import make_folder, open_file

TURN_WAIT = 30.0
"""Seconds that a run waits for another run's turn on the same context or session, unless a caller says otherwise."""

WRITE_WAIT = 30.0
"""Seconds to wait for another process's write, which takes milliseconds unless that process was stopped."""

# Short at first, since a write is; then longer, since a turn takes seconds. In seconds.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.01


def acquire(path: Path, wait: float, cancelled: threading.Event | None = None, *, follow: bool = False) -> int | None:
    """A descriptor that holds the lock file ``path``, made if missing; None when it is taken for ``wait`` seconds.

    Setting ``cancelled`` ends the waiting at once: None, even if the lock came free at that moment. Two callers exclude
    each other even within one process; ``release`` may be called in another thread than this. Raises OSError when the
    file cannot be made or opened; a symbolic link in its place is refused unless ``follow``.
    """
    deadline = time.monotonic() + wait
    while True:
        try:
            descriptor = open_file(path, os.O_RDWR, create=True, follow=follow)
        except FileNotFoundError:
            make_folder(path.parent)
            descriptor = open_file(path, os.O_RDWR, create=True, follow=follow)
        try:
            if not _lock(descriptor, deadline, cancelled):
                os.close(descriptor)
                return None
            if _is_at(descriptor, path):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        # Its last holder discarded the file while we waited: whoever comes now locks another one. Start again.
        os.close(descriptor)


def release(descriptor: int) -> None:
    """Let go of the lock that ``acquire`` gave."""
    from filelock import unlock_descriptor

    # Unlocked before it is closed: a forked child may hold a copy of the descriptor.
    try:
        unlock_descriptor(descriptor)
    finally:
        os.close(descriptor)


def discard(path: Path) -> None:
    """Remove the lock file ``path``, whose lock the caller holds; who waits for it notices and starts again."""
    with contextlib.suppress(OSError):
        path.unlink()


@contextlib.contextmanager
def held_if_there(path: Path, wait: float) -> Iterator[None]:
    """Hold the lock file ``path`` where there is one and it can be had; nothing is made, for callers who only read."""
    descriptor = None
    with contextlib.suppress(OSError):
        descriptor = open_file(path, os.O_RDONLY, follow=False)
        _lock(descriptor, time.monotonic() + wait, None)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _lock(descriptor: int, deadline: float, cancelled: threading.Event | None) -> bool:
    from filelock import lock_descriptor

    pause = _FIRST_PAUSE
    while not lock_descriptor(descriptor, blocking=False):
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return False
        if cancelled is None:
            time.sleep(min(pause, remaining))
        elif cancelled.wait(min(pause, remaining)):
            return False
        pause = min(pause * 2, _LONGEST_PAUSE)
    return cancelled is None or not cancelled.is_set()


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
