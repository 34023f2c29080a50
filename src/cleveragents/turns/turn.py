"""What a run asks of the place where its turn is kept, so that one body runs them all."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cleveragents import background
from cleveragents.agents.agent import Conversation
from cleveragents.streams.router import RunResult
from cleveragents.values.merge import Changes

SILENCE = 1.0
"""Seconds of waiting for another run of which nothing is said."""

Late = Callable[[], None]
"""Called when waiting takes long."""


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a turn begins with: the text that goes into the network, the global context that was kept.

    ``conversation`` is where the first llm agents read what was said before, and keep their calls, if anywhere.
    """

    text: str
    global_context: Mapping[str, Any]
    conversation: Conversation | None = None


class Turn(Protocol):
    """One prompt and what comes of it. Each method has everything on disk when it returns.

    Its calls come in this order: ``held`` around all others, ``begin``, then ``end`` or ``break_off``. What llms say
    and use in between is in its ``PartialAnswer``; the steps in which they call tools come to ``Conversation.keep``.
    """

    def held(self, wait: float, late: Late) -> AbstractAsyncContextManager[None]:
        """Have the one turn inside the block. Raises ContextBusyError or SessionBusyError after ``wait`` seconds.

        ``late`` is called once when it has not been had after a second.
        """

    async def begin(self, prompt: str, config: Path | None) -> Beginning:
        """Keep the question, and the configuration file that answers it."""

    async def end(self, result: RunResult, changes: Changes) -> None:
        """Keep what came out, what it used, and the ``changes`` of the global context."""

    async def break_off(self, error: BaseException, changes: Changes) -> None:
        """Keep what there is of a turn that ends with ``error``: what came of the answer is marked as interrupted.

        May raise another error, when that is what is wrong. Whoever cancels is not kept waiting.
        """


class UnkeptTurn:
    """See Turn: that of a run without a context or a session, of which nothing is kept."""

    @asynccontextmanager
    async def held(self, wait: float, late: Late) -> AsyncIterator[None]:  # noqa: ARG002 - there is nothing to wait for
        """Nothing is shared with anybody."""
        yield

    async def begin(self, prompt: str, config: Path | None) -> Beginning:  # noqa: ARG002 - nothing is kept
        """The prompt alone."""
        return Beginning(prompt, {})

    async def end(self, result: RunResult, changes: Changes) -> None:
        """Nothing is kept."""

    async def break_off(self, error: BaseException, changes: Changes) -> None:
        """Nothing is kept."""


@asynccontextmanager
async def held_by(lock: Callable[[threading.Event], AbstractContextManager[None]], late: Late) -> AsyncIterator[None]:
    """Hold a lock that is waited for in a thread; a run that is cancelled meanwhile gives up waiting at once.

    ``lock`` makes it, given the event that ends its waiting. ``late`` is as for Turn.
    """
    cancelled = threading.Event()

    def take() -> AbstractContextManager[None]:
        taken = lock(cancelled)
        taken.__enter__()
        return taken

    def give_back(taken: Future[AbstractContextManager[None]]) -> None:
        if taken.exception() is None:
            taken.result().__exit__(None, None, None)

    taking = background.start(take)
    try:
        coming = asyncio.wrap_future(taking)
        if not (await asyncio.wait([coming], timeout=SILENCE))[0]:
            late()
        held = await coming
    except asyncio.CancelledError:
        cancelled.set()
        # It may have been taken at the last moment.
        taking.add_done_callback(give_back)
        raise
    try:
        yield
    finally:
        held.__exit__(None, None, None)
