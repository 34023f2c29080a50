"""How a run is ended from outside: SIGTERM and SIGHUP do what Ctrl-C does, and what came of the answer is kept."""

from __future__ import annotations

import signal
from types import FrameType

_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def interrupt_on_termination() -> None:
    """From now on take SIGTERM and SIGHUP for Ctrl-C, except what the caller has told this process to ignore."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and hasattr(signal, "pthread_sigmask"):
        # A script's background job: its shell has shut out Ctrl-C, which stays out. What Ctrl-C does is needed.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in _SIGNALS:
        # nohup, for one, wants a run to survive the end of its terminal.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def ignore_interruption() -> None:
    """From now on ignore all of them: the process is about to end, and has been told so once."""
    for number in (signal.SIGINT, *_SIGNALS):
        signal.signal(number, signal.SIG_IGN)


def _interrupt(_number: int, frame: FrameType | None) -> None:
    # Asked at this moment: while a run is at work this is what ends its tasks in order.
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)
