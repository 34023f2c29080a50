"""One turn on a session: each part of it is in the database when it has happened, and the llm knows what was before.

The store is synchronous and may have to wait for others; here it is called in threads that nobody waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from cleveragents import background
from cleveragents.agents.agent import Message
from cleveragents.agents.events import HistoryLeftOut, tell
from cleveragents.config.models import WindowConfig
from cleveragents.conversation.content import NOTHING
from cleveragents.conversation.message import MessageDraft
from cleveragents.conversation.reserved import (
    CUT,
    FAILED,
    GLOBAL_CONTEXT,
    INTERRUPTED,
    RESERVED,
    reserved,
    with_reserved,
)
from cleveragents.conversation.transcript import Step, Turn, turns_of
from cleveragents.conversation.window import Window, as_sent
from cleveragents.errors import SessionServiceError
from cleveragents.sessions.config_file import ConfigFile
from cleveragents.sessions.service import SessionService
from cleveragents.streams.router import RunResult
from cleveragents.turns.partial_answer import PartialAnswer
from cleveragents.turns.turn import Beginning, Late, held_by
from cleveragents.values.merge import Changes

GRACE = 0.5
"""Seconds that a cancelled run gives the database to finish what is being saved."""

_FIRST_PAGE, _GROWTH = 128, 4

_T = TypeVar("_T")


class SessionTurn:
    """See Turn; the Conversation of its message as well.

    ``window`` says how much of the session llms are given; None leaves that to them.
    """

    def __init__(
        self, sessions: SessionService, session_id: str, window: WindowConfig | None, answer: PartialAnswer
    ) -> None:
        self._sessions = sessions
        self._id = session_id
        self._window = None if window is None else Window(**window.model_dump())
        self._partial = answer
        self._prompt = ""
        self._first = 0
        self._failure: SessionServiceError | None = None
        self._hangs = False

    def held(self, wait: float, late: Late) -> AbstractAsyncContextManager[None]:
        """See Turn."""
        return held_by(lambda cancelled: self._sessions.turn(self._id, wait, cancelled=cancelled), late)

    async def begin(self, prompt: str, config: Path | None) -> Beginning:
        """See Turn."""

        def store() -> Mapping[str, Any]:
            metadata = self._sessions.summary(self._id).metadata
            self._first = self._sessions.append(self._id, "user", prompt).sequence
            if config is not None and (remembered := ConfigFile.at(config).as_metadata(metadata)):
                self._sessions.update(self._id, metadata=remembered)
            kept = reserved(metadata, GLOBAL_CONTEXT)
            return kept if isinstance(kept, Mapping) else {}

        self._prompt = prompt
        return Beginning(prompt, await self._finished(store), conversation=self)

    async def turns(self, tokens: int, turn_tokens: int) -> Sequence[Turn]:
        """See Conversation. Reads back from the question until the window is full."""
        window = self._window or Window(tokens=tokens)

        def read() -> tuple[list[Turn], int]:
            size = _FIRST_PAGE
            while True:
                start = max(0, self._first - size)
                stored = self._sessions.messages(self._id, limit=self._first - start, offset=start)
                turns = turns_of(stored, self._prompt)
                newest = window.newest([as_sent(turn, turn_tokens) for turn in turns])
                left_out = turns[: len(turns) - len(newest)]
                if start == 0 or left_out:
                    return newest, start + sum(turn.messages for turn in left_out)
                size *= _GROWTH

        with self._noting():
            newest, left_out = await asyncio.wrap_future(background.start(read))
        if left_out:
            tell(HistoryLeftOut(left_out))
        return newest

    def composed(self, prompt: str) -> str:
        """See Conversation. What was said before has roles of its own."""
        return prompt

    async def keep(self, agent: str, step: Step) -> None:
        """See Conversation."""
        calls = [{"id": call.id, "name": call.name, "arguments": call.arguments} for call in step.calls]
        drafts = [MessageDraft("assistant", step.text.strip() or None, tool_calls=calls, agent=agent)]
        drafts += [
            MessageDraft(
                "tool",
                call.result if call.result.strip() else NOTHING,
                tool_call_id=call.id,
                agent=call.name,
                metadata=with_reserved({}, {FAILED: True}) if call.failed else {},
            )
            for call in step.calls
        ]
        # Before it is: whoever cancels while it is being stored shall not store its text once more.
        self._partial.kept(agent)
        with self._noting():
            await self._finished(lambda: self._sessions.append_all(self._id, drafts))

    async def end(self, result: RunResult, changes: Changes) -> None:
        """See Turn. Of an answer, the steps that are stored already are left out."""
        drafts = [draft for output in result.distinct_messages if (draft := self._answer(output)) is not None]
        await self._finished(lambda: self._store(drafts, changes))

    async def break_off(self, error: BaseException, changes: Changes) -> None:
        """See Turn. Raises SessionServiceError when the store is what is wrong."""
        drafts = []
        if (text := self._partial.text).strip():
            agent = self._partial.answering_agent
            drafts.append(MessageDraft("assistant", text, agent=agent, metadata={INTERRUPTED: True}))

        def store() -> None:
            self._store(drafts, changes)

        if not isinstance(error, Exception):
            await self._a_moment_for(asyncio.wrap_future(background.start(store)))
            return
        if self._failure is not None:
            raise self._failure
        await self._finished(store)

    def _answer(self, output: Message) -> MessageDraft | None:
        """An output as the message that is stored; None when nothing is left of it that could be."""
        text = output.unkept_text
        if not text.strip():
            return None
        metadata = with_reserved({}, {CUT: output.cut_off} if output.cut_off else {})
        return MessageDraft("assistant", text, agent=output.agent or None, metadata=metadata)

    def _store(self, drafts: Sequence[MessageDraft], changes: Changes) -> None:
        """The usage comes last: it is a server's word, and nothing else may be lost to what is wrong with it."""
        if drafts:
            self._sessions.append_all(self._id, drafts)
        if changes:
            removed = [(RESERVED, GLOBAL_CONTEXT, *path) for path in changes.removed]
            self._sessions.update(self._id, metadata=with_reserved({}, {GLOBAL_CONTEXT: changes.set}), removed=removed)
        for usage in self._partial.used:
            cost = None if usage.cost is None else float(usage.cost)
            self._sessions.add_usage(
                self._id,
                usage.input_tokens,
                usage.output_tokens,
                cost,
                llm=usage.llm or None,
                cached_tokens=usage.cached_tokens,
                reasoning_tokens=usage.reasoning_tokens,
            )

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
