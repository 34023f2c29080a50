"""One call of code: in a thread, so that whoever waits for it can stop waiting and end it at once."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from cleveragents.agents.tool.limits import PROCESSES

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_T = TypeVar("_T")
_GRACE = 0.2  # seconds in which what is late may say so itself


class Call:
    """One run of code in another process, which whoever waits for it can end at once."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.late = False
        self._began = math.inf
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

    def begin(self) -> None:
        """Count the call's time from now on, and not from when it began to wait for its turn."""
        self._began = time.monotonic()

    def left(self, seconds: float) -> float:
        """What is left of the ``seconds`` that it may take."""
        return seconds - max(0.0, time.monotonic() - self._began)

    def stop(self) -> None:
        """End the call's process."""
        with self._lock:
            self.stopped.set()
            if self._kill is not None:
                self._kill()


async def wait_for(work: Callable[[Call], _T], seconds: float | None = None) -> _T:
    """The outcome of ``work``, which runs in a thread. Cancelling stops its call and does not wait for it.

    A call that has begun is stopped soon after its ``seconds``, and is ``late`` then: for work that ends in time by
    itself, but for what this cannot foresee.
    """
    import asyncio

    call = Call()
    future = asyncio.get_running_loop().run_in_executor(_threads(os.getpid()), work, call)
    try:
        if seconds is not None:
            while not (await asyncio.wait({future}, timeout=max(0.0, call.left(seconds)) + _GRACE))[0]:
                if call.left(seconds) <= 0:
                    call.late = True
                    call.stop()
                    break
        return await future
    finally:
        future.cancel()
        call.stop()  # nothing outlives the wait for it, however that ended


@cache
def _threads(process: int) -> ThreadPoolExecutor:  # noqa: ARG001 - a fork's child has none of its parent's threads
    """Threads of our own, for two reasons.

    There are as many as processes: with an event loop's threads, ``--unsafe`` would start a process for each of thirty
    messages at once. And an event loop waits for its threads when it ends, so that a Ctrl-C would be answered only when
    a sandbox that is slow to start has started.
    """
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(PROCESSES, thread_name_prefix="tool")
