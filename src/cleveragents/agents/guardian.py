"""Running code does not outlive this process, even when it is killed and can end nothing any more.

A shell waits for the end of a pipe that only this process holds open, and then kills what it was last told of. It needs
no cooperation from the code, which may be busy and deaf to signals, nor from the sandbox's worker, which notices that
its parent is gone only between two calls.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# A line replaces the one before it. What is not such a line, written by whoever took the pipe for another, is ignored.
_SCRIPT = """
while read -r word processes; do
    if [ "$word" = running ]; then running=$processes; fi
done
if [ -n "$running" ]; then kill -9 $running; fi
"""


class _Guardian:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[int] = set()
        self._shell: tuple[int, int] | None = None  # its process, and our end of its pipe

    @contextmanager
    def watching(self, process: int) -> Iterator[None]:
        self._update(self._running.add, process)
        try:
            yield
        finally:
            self._update(self._running.discard, process)

    def _update(self, change: Callable[[int], None], process: int) -> None:
        with self._lock:
            change(process)
            try:
                self._tell()
            except BrokenPipeError:  # somebody killed the shell
                self.close()
                self._tell()

    def _tell(self) -> None:
        if self._shell is None:
            self._shell = _start()
        os.write(self._shell[1], f"running {' '.join(map(str, self._running))}\n".encode())

    def close(self) -> None:
        """Let go of the shell, which is another process's, or has ended."""
        if self._shell is not None:
            shell, pipe = self._shell
            self._shell = None
            os.close(pipe)
            try:
                os.waitpid(shell, os.WNOHANG)
            except ChildProcessError:
                pass


def _start() -> tuple[int, int]:
    reading, writing = os.pipe()
    try:
        # Nobody waits for the shell: it ends right after this process. Its session of its own keeps Ctrl-C from it.
        shell = os.posix_spawn(
            "/bin/sh",
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


_guardian = _Guardian()


def killed_with_us(process: int) -> AbstractContextManager[None]:
    """While the block runs, ``process``, or its whole group if that is negative, dies when this process does.

    Raises OSError when the system cannot start one more process.
    """
    return _guardian.watching(process)


def _forget() -> None:
    """In a fork's child: the pipe's end is its parent's, who would seem to live on while the child does."""
    global _guardian
    _guardian.close()
    _guardian = _Guardian()
