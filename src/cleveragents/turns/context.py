"""One turn on a named context: questions and answers go into its conversation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path

from cleveragents.agents.events import HistoryLeftOut, tell
from cleveragents.config import HistoryConfig
from cleveragents.contexts import ContextManager
from cleveragents.conversation.content import HistoryMessage, content_text
from cleveragents.conversation.prompt import format_prompt
from cleveragents.conversation.reserved import CUT, INTERRUPTED, with_reserved
from cleveragents.conversation.transcript import Step, Turn, turns_of
from cleveragents.conversation.window import Window, as_sent
from cleveragents.errors import ContextNotFoundError
from cleveragents.streams.router import RunResult
from cleveragents.turns.partial_answer import PartialAnswer
from cleveragents.turns.turn import Beginning, Late, held_by
from cleveragents.values.merge import Changes


class ContextTurn:
    """See Turn. ``history`` says how much of the conversation goes before the prompt.

    The context is read and written without an await: each call is short, and a Ctrl-C, which cancels at an await,
    cannot come between an answer and its place on disk.
    """

    def __init__(self, context: ContextManager, history: HistoryConfig, answer: PartialAnswer) -> None:
        self._context = context
        self._history = history
        self._partial = answer
        self._prompt = ""
        self._recent: Sequence[HistoryMessage] = ()

    def held(self, wait: float, late: Late) -> AbstractAsyncContextManager[None]:
        """See Turn."""
        return held_by(lambda cancelled: self._context.turn(wait, cancelled=cancelled), late)

    async def begin(self, prompt: str, config: Path | None) -> Beginning:  # noqa: ARG002 - a context remembers no file
        """See Turn. Llm agents put what was said before in front of the prompt, or are sent it in roles of its own."""
        limits = self._history
        recent = self._context.last_messages(limits.messages)
        kept = self._context.global_context
        self._context.add_message("user", prompt)
        self._prompt, self._recent = prompt, recent
        return Beginning(prompt, kept, conversation=self)

    async def turns(self, tokens: int, turn_tokens: int) -> Sequence[Turn]:
        """See Conversation. Nothing, unless history goes in roles of its own."""
        if self._history.form != "messages":
            return []
        from cleveragents.conversation.message import MessageDraft

        drafts = [
            MessageDraft(message.role, text, metadata=dict(message.metadata))
            for message in self._recent
            if message.role in {"user", "assistant"} and (text := content_text(message.content)).strip()
        ]
        turns = turns_of(drafts, self._prompt)
        newest = Window(tokens=tokens).newest([as_sent(turn, turn_tokens) for turn in turns])
        if left_out := sum(turn.messages for turn in turns[: len(turns) - len(newest)]):
            tell(HistoryLeftOut(left_out))
        return newest

    def composed(self, prompt: str) -> str:
        """See Conversation. What was said before, as text in front of ``prompt``."""
        limits = self._history
        if limits.form == "messages":
            return prompt
        return format_prompt(prompt, self._recent, limit=limits.messages, assistant_limit=limits.assistant_characters)

    async def keep(self, agent: str, step: Step) -> None:
        """See Conversation. A context keeps no calls of tools."""

    async def end(self, result: RunResult, changes: Changes) -> None:
        """See Turn."""
        with self._keeping():
            for message in result.distinct_messages:
                cut_off = {CUT: message.cut_off} if message.cut_off else {}
                self._context.add_message("assistant", content_text(message.output), with_reserved({}, cut_off) or None)
            self._save(changes)

    async def break_off(self, error: BaseException, changes: Changes) -> None:  # noqa: ARG002 - whatever it was
        """See Turn."""
        with self._keeping():
            if self._partial.text:
                self._context.add_message("assistant", self._partial.text, {INTERRUPTED: True})
            self._save(changes)

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """Say of a context that was deleted during the run what that means for its answer."""
        try:
            yield
        except ContextNotFoundError:
            raise ContextNotFoundError(
                f"the answer could not be kept: context {self._context.name!r} was deleted or replaced during the run"
            ) from None

    def _save(self, changes: Changes) -> None:
        if changes:
            self._context.update_global_context(changes.set, changes.removed)
