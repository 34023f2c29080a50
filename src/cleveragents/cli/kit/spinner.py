"""A sign of life on stderr while a person at a terminal waits."""

from __future__ import annotations

import sys
import threading
import time
from itertools import cycle
from types import TracebackType

QUIET = 1.0
"""Seconds without a sign that a person is asked to bear."""

_TURN = 0.1  # seconds
_FRAMES = "|/-\\"


class Spinner:
    """Turns on a terminal's stderr while it is entered and nothing else was shown for a second.

    It is one character in the first column, and the cursor stays before it, so that any line takes its place.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._begin = 0.0
        self._drawn = False

    def __enter__(self) -> None:
        self._begin = time.monotonic() + QUIET
        if sys.stderr.isatty():
            threading.Thread(target=self._turn, daemon=True).start()

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.stop()

    def pause(self) -> None:
        """Make room for a line that is about to be shown, and wait for a second anew."""
        with self._lock:
            self._clear()
            self._begin = time.monotonic() + QUIET

    def stop(self) -> None:
        """Make room for good."""
        with self._lock:
            self._ended.set()
            self._clear()

    def _turn(self) -> None:
        frames = cycle(_FRAMES)
        while not self._ended.wait(_TURN):
            with self._lock:
                if not self._ended.is_set() and time.monotonic() >= self._begin:
                    self._drawn = True
                    self._write(next(frames))

    def _clear(self) -> None:
        if self._drawn:
            self._drawn = False
            self._write(" ")

    def _write(self, character: str) -> None:
        try:
            sys.stderr.write(f"{character}\r")
            sys.stderr.flush()
        except OSError:
            self._ended.set()  # the terminal has gone
