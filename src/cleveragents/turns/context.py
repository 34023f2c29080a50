"""One turn on a named context: questions and answers go into its conversation."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from cleveragents.config import HistoryConfig
from cleveragents.contexts import ContextManager
from cleveragents.conversation.content import content_text
from cleveragents.conversation.prompt import format_prompt
from cleveragents.conversation.reserved import INTERRUPTED
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

    def held(self, wait: float, late: Late) -> AbstractAsyncContextManager[None]:
        """See Turn."""
        return held_by(lambda cancelled: self._context.turn(wait, cancelled=cancelled), late)

    async def begin(self, prompt: str, config: Path | None) -> Beginning:  # noqa: ARG002 - a context remembers no file
        """See Turn. The text is the composed prompt: what was said before, then the prompt."""
        limits = self._history
        recent = self._context.last_messages(limits.messages)
        kept = self._context.global_context
        self._context.add_message("user", prompt)
        text = format_prompt(prompt, recent, limit=limits.messages, assistant_limit=limits.assistant_characters)
        return Beginning(text, kept)

    async def end(self, result: RunResult, changes: Changes) -> None:
        """See Turn."""
        for output in result.outputs:
            self._context.add_message("assistant", content_text(output))
        self._save(changes)

    async def break_off(self, error: BaseException, changes: Changes) -> None:  # noqa: ARG002 - whatever it was
        """See Turn."""
        if self._partial.text:
            self._context.add_message("assistant", self._partial.text, {INTERRUPTED: True})
        self._save(changes)

    def _save(self, changes: Changes) -> None:
        if changes:
            self._context.update_global_context(changes.set, changes.removed)
