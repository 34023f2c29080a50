"""What running a tool's code needs, in the sandbox and outside of it: limits, bounded output, a thread to wait in."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from cleveragents.errors import InvalidSettingError
from cleveragents.values.text import clean_text

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

TIME_LIMIT = 5.0
"""Seconds that code may run, unless its agent says otherwise."""

MEMORY_LIMIT = 256_000_000
"""Bytes that code may use, unless its agent says otherwise."""

SIZE_LIMIT = 8_000_000
"""Bytes that a message, a result or a context may have on its way into or out of code."""

PRINT_LIMIT = 65_536
"""Characters kept of what code prints."""

PROCESSES = 2
"""Processes that run code at the same time; further calls wait their turn."""

_LONGEST_TIME = 86_400.0
_LONGEST_REASON = 500

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call of code may use: ``time`` in seconds, ``memory`` in bytes. Raises InvalidSettingError."""

    time: float = TIME_LIMIT
    memory: int = MEMORY_LIMIT

    def __post_init__(self) -> None:
        if not 0 < self.time <= _LONGEST_TIME:
            raise InvalidSettingError(f"time_limit {self.time} is not a number of seconds above 0 and up to a day")
        if self.memory <= 0:
            raise InvalidSettingError(f"memory_limit {self.memory} is not a number of bytes above 0")

    @property
    def time_text(self) -> str:
        """How an error names the time limit."""
        return f"stopped at the time limit of {self.time:g} s"

    @property
    def memory_text(self) -> str:
        """How an error names the memory limit."""
        return f"stopped at the memory limit of {self.memory / 1_000_000:g} MB"


class Printed:
    """What code printed: the first ``PRINT_LIMIT`` characters, and a mark for what was cut."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._room = PRINT_LIMIT
        self._cut = 0

    def write(self, text: str) -> None:
        """Keep as much of ``text`` as there is room for."""
        kept = text[: self._room]
        if kept:
            self._pieces.append(kept)
            self._room -= len(kept)
        self._cut += len(text) - len(kept)

    @property
    def text(self) -> str:
        """All that was kept."""
        mark = f"\n… {self._cut:,} more characters were cut\n" if self._cut else ""
        return clean_text("".join(self._pieces)) + mark


class Call:
    """One run of code in another process, which whoever waits for it can end at once."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self._lock = threading.Lock()
        self._kill: Callable[[], None] | None = None

    @contextmanager
    def killed_by(self, kill: Callable[[], None]) -> Iterator[None]:
        """Have ``stop`` call ``kill`` while the block runs; at the latest when it begins, if it is late."""
        with self._lock:
            self._kill = kill
            if self.stopped.is_set():
                kill()
        try:
            yield
        finally:
            # A kill past this point could hit a process that serves somebody else by then.
            with self._lock:
                self._kill = None

    def stop(self) -> None:
        """End the call's process."""
        with self._lock:
            self.stopped.set()
            if self._kill is not None:
                self._kill()


async def wait_for(work: Callable[[Call], _T]) -> _T:
    """The outcome of ``work``, which runs in a thread. Cancelling stops its call and does not wait for it."""
    import asyncio

    call = Call()
    future = asyncio.get_running_loop().run_in_executor(_threads(os.getpid()), work, call)
    try:
        return await future
    finally:
        call.stop()  # nothing outlives the wait for it, however that ended


@cache
def _threads(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - a fork's child has none of its parent's threads
    """Threads of our own: those of an event loop end with it, and closing it would wait for them."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(PROCESSES, thread_name_prefix="tool")


def one_line(text: str) -> str:
    """``text`` of code's own making as part of an error's line: no line breaks, and not endless."""
    line = " ".join(clean_text(text[: 4 * _LONGEST_REASON]).split())
    return line if len(line) <= _LONGEST_REASON else line[:_LONGEST_REASON] + "…"
