"""One call of code: in a thread, so that whoever waits for it can stop waiting and end it at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from cleveragents.agents.tool.limits import PROCESSES

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_T = TypeVar("_T")


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
    """Threads of our own, for two reasons.

    There are as many as processes: with an event loop's threads, ``--unsafe`` would start a process for each of thirty
    messages at once. And an event loop waits for its threads when it ends, so that a Ctrl-C would be answered only when
    a sandbox that is slow to start has started.
    """
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(PROCESSES, thread_name_prefix="tool")
