"""One turn on a session: each part of it is in the database when it has happened, and the llm knows what was before.

The store is synchronous and may have to wait for others; here it is called in threads that nobody waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from cleveragents import background
from cleveragents.conversation.message import MessageDraft
from cleveragents.conversation.reserved import (
    CONFIG,
    FAILED,
    GLOBAL_CONTEXT,
    INTERRUPTED,
    RESERVED,
    reserved,
    with_reserved,
)
from cleveragents.conversation.transcript import Step, Turn, Window, turns_of
from cleveragents.conversation.usage import Usage
from cleveragents.errors import SessionServiceError
from cleveragents.sessions.service import SessionService
from cleveragents.values.merge import Changes

GRACE = 0.5
"""Seconds that a cancelled run gives the database to finish what is being saved."""

_FIRST_PAGE, _GROWTH = 128, 4
_NOTHING = "[nothing]"

_T = TypeVar("_T")


class SessionTurn:
    """A turn of ``session_id``, which is the Conversation of its message as well.

    ``window`` says how much of the session llms are given; None leaves that to them.
    """

    def __init__(self, sessions: SessionService, session_id: str, window: Window | None) -> None:
        self._sessions = sessions
        self._id = session_id
        self._window = window
        self._prompt = ""
        self._first = 0
        self._kept: list[tuple[str, str]] = []
        self._failure: SessionServiceError | None = None
        self._hangs = False

    @asynccontextmanager
    async def held(self, wait: float) -> AsyncIterator[None]:
        """Hold the session's turn lock; SessionBusyError after ``wait`` seconds."""

        def take() -> AbstractContextManager[None]:
            lock = self._sessions.turn(self._id, wait)
            lock.__enter__()
            return lock

        def give_back(taken: Future[AbstractContextManager[None]]) -> None:
            if taken.exception() is None:
                taken.result().__exit__(None, None, None)

        taking = background.start(take)
        try:
            lock = await asyncio.wrap_future(taking)
        except asyncio.CancelledError:
            # The thread goes on waiting; what it may still get is not kept.
            taking.add_done_callback(give_back)
            raise
        try:
            yield
        finally:
            lock.__exit__(None, None, None)

    async def begin(self, prompt: str, config: Path | None) -> Mapping[str, Any]:
        """Store the question, and give back the global context that the session has kept."""

        def store() -> Mapping[str, Any]:
            metadata = self._sessions.summary(self._id).metadata
            self._first = self._sessions.append(self._id, "user", prompt).sequence
            if config is not None and reserved(metadata, CONFIG) != (path := str(config.absolute())):
                self._sessions.update(self._id, metadata=with_reserved({}, {CONFIG: path}))
            kept = reserved(metadata, GLOBAL_CONTEXT)
            return kept if isinstance(kept, Mapping) else {}

        self._prompt = prompt
        return await self._finished(store)

    async def turns(self, tokens: int) -> Sequence[Turn]:
        """See Conversation. Reads back from the question until the window is full."""
        window = self._window or Window(tokens=tokens)

        def read() -> list[Turn]:
            size = _FIRST_PAGE
            while True:
                start = max(0, self._first - size)
                stored = self._sessions.messages(self._id, limit=self._first - start, offset=start)
                turns = turns_of(stored, self._prompt)
                newest = window.newest(turns)
                if start == 0 or len(newest) < len(turns):
                    return newest
                size *= _GROWTH

        with self._noting():
            return await asyncio.wrap_future(background.start(read))

    async def keep(self, agent: str, step: Step) -> None:
        """See Conversation."""
        calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in step.calls]
        drafts = [MessageDraft("assistant", step.text or None, tool_calls=calls, agent=agent)]
        drafts += [
            MessageDraft(
                "tool",
                call.result if call.result.strip() else _NOTHING,
                tool_call_id=call.id,
                agent=call.name,
                metadata=with_reserved({}, {FAILED: True}) if call.failed else {},
            )
            for call in step.calls
        ]
        with self._noting():
            await self._finished(lambda: self._sessions.append_all(self._id, drafts))
        if step.text:
            self._kept.append((agent, step.text))

    async def end(self, answers: Iterable[tuple[str, str]], used: Iterable[Usage], changes: Changes) -> None:
        """Store what came out, as agent and text, what it cost, and what agents changed in the global context."""
        drafts = self._answers(answers, {})
        await self._finished(lambda: self._store(drafts, used, changes))

    async def break_off(
        self, error: BaseException, answer: tuple[str, str], used: Iterable[Usage], changes: Changes
    ) -> None:
        """Store what there is of a turn that ends with ``error``: what came of the answer is marked.

        Raises SessionServiceError when that is what is wrong; whoever cancels is not kept waiting.
        """
        drafts = self._answers([answer], {INTERRUPTED: True})

        def store() -> None:
            self._store(drafts, used, changes)

        if not isinstance(error, Exception):
            await self._a_moment_for(asyncio.wrap_future(background.start(store)))
            return
        if self._failure is not None:
            raise self._failure
        await self._finished(store)

    def _answers(self, answers: Iterable[tuple[str, str]], metadata: dict[str, Any]) -> list[MessageDraft]:
        """Answers as messages, without what their agents said, and was stored, before they called tools."""
        drafts = []
        for agent, answer in answers:
            said = "\n\n".join(text for name, text in self._kept if name == agent)
            text = answer.removeprefix(said).lstrip("\n") if said else answer
            if not text.strip() and not metadata:
                text = answer
            if text.strip():
                drafts.append(MessageDraft("assistant", text, agent=agent or None, metadata=metadata))
        return drafts

    def _store(self, drafts: Sequence[MessageDraft], used: Iterable[Usage], changes: Changes) -> None:
        if drafts:
            self._sessions.append_all(self._id, drafts)
        for usage in used:
            cost = None if usage.cost is None else float(usage.cost)
            self._sessions.add_usage(self._id, usage.input_tokens, usage.output_tokens, cost, llm=usage.llm or None)
        if changes:
            removed = [(RESERVED, GLOBAL_CONTEXT, *path) for path in changes.removed]
            self._sessions.update(self._id, metadata=with_reserved({}, {GLOBAL_CONTEXT: changes.set}), removed=removed)

    async def _finished(self, work: Callable[[], _T]) -> _T:
        """The outcome of ``work`` on the store. A run cancelled meanwhile gives it a moment: nothing is lost."""
        saving = asyncio.wrap_future(background.start(work))
        try:
            return await asyncio.shield(saving)
        except asyncio.CancelledError:
            await self._a_moment_for(saving)
            raise

    async def _a_moment_for(self, saving: asyncio.Future[Any]) -> None:
        """Wait for ``saving``, but not long, and not once more for a store that hangs."""
        await asyncio.wait([saving], timeout=0 if self._hangs else GRACE)
        if saving.done():
            saving.exception()  # which nobody can be told any more
        else:
            self._hangs = True

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """Remember that the store failed: to the network it is an agent's failure like any other."""
        try:
            yield
        except SessionServiceError as error:
            self._failure = error
            raise
