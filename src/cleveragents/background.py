"""Slow work in a thread that nobody waits for when the program ends."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_T = TypeVar("_T")


def start(work: Callable[[], _T]) -> Future[_T]:
    """The outcome of ``work``, which a daemon thread begins now.

    Await it with ``asyncio.wrap_future``; whoever is cancelled meanwhile leaves the work, and others who wait, alone.
    """
    outcome: Future[_T] = Future()
    outcome.set_running_or_notify_cancel()  # from here on it cannot be cancelled

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 - whoever waits for the outcome is told
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome
