"""Running code does not outlive this process, even when it is killed and can end nothing any more.

Without it, a ``kill -9`` in the middle of a tool would leave its code running: in the sandbox up to the time limit,
which may be a day, and with ``--unsafe`` whatever the code had started, for ever.

A shell waits for the end of a pipe that only this process holds open, and then kills what it was last told of. It needs
no cooperation from the code, which may be busy and deaf to signals, nor from the sandbox's worker, which notices that
its parent is gone only between two calls.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

_SHELL = "/bin/sh"
# A line replaces the one before it. What is no such line, written by whoever takes the pipe for another, is ignored.
_SCRIPT = """
while read -r word processes; do
    if [ "$word" = running ]; then running=$processes; fi
done
if [ -n "$running" ]; then kill -9 $running; fi
"""


@contextmanager
def killed_with_us(process: int) -> Iterator[None]:
    """While the block runs, ``process``, or its whole group if that is negative, dies when this process does.

    Where no shell can be started the code is still bound by its time limit.
    """
    guardian = _guardian
    guardian.update(guardian.running.add, process)
    try:
        yield
    finally:
        guardian.update(guardian.running.discard, process)


class _Guardian:
    def __init__(self) -> None:
        self.running: set[int] = set()
        self._lock = threading.Lock()
        self._shell: tuple[int, int] | None = None  # its process, and our end of its pipe

    def update(self, change: Callable[[int], None], process: int) -> None:
        if not hasattr(os, "posix_spawn"):
            return
        with self._lock, suppress(OSError):
            change(process)
            try:
                self._tell()
            except BrokenPipeError:  # somebody killed the shell
                self.leave()
                self._tell()

    def _tell(self) -> None:
        if self._shell is None:
            self._shell = _start()
        os.write(self._shell[1], f"running {' '.join(map(str, self.running))}\n".encode())

    def leave(self) -> None:
        """Let go of a shell that has ended, or that is another process's."""
        if self._shell is not None:
            shell, pipe = self._shell
            self._shell = None
            os.close(pipe)
            with suppress(ChildProcessError):
                os.waitpid(shell, os.WNOHANG)


def _start() -> tuple[int, int]:
    reading, writing = os.pipe()
    try:
        # Nobody waits for the shell: it ends right after this process. A session of its own keeps Ctrl-C from it.
        shell = os.posix_spawn(
            _SHELL,
            ["sh", "-c", _SCRIPT],
            {},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, reading, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setsid=True,
        )
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    return shell, writing


def _after_fork() -> None:
    """A fork has its parent's end of the pipe, and its parent would seem to live as long as the fork does."""
    global _guardian  # noqa: PLW0603 - a fork starts anew, without a lock that may be taken
    _guardian.leave()
    _guardian = _Guardian()


_guardian = _Guardian()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
