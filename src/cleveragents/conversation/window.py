"""How much of a conversation an llm is sent: the newest turns that fit, and of a long text its beginning and its end.

What is sent of a turn depends on the turn and the llm alone, so that a conversation begins the same in each turn, which
providers reward.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cleveragents.conversation.transcript import BYTES_A_TOKEN, Step, Turn, estimated_tokens
from cleveragents.values.json import dump_json

SHORT_TEXT = 500
"""Tokens of each text of a turn that is shortened because it would not fit otherwise."""

_LEAST = 250
"""Tokens that a text has in a turn, however much has been said in it."""


def shortened(text: str, tokens: int) -> str:
    """``text``, or about so many ``tokens`` of its beginning and its end, and in between how much is left out."""
    if estimated_tokens(text) <= tokens:
        return text
    data = text.encode("utf-8", "replace")
    half = tokens * BYTES_A_TOKEN // 2
    beginning, end = (part.decode("utf-8", "ignore") for part in (data[:half], data[len(data) - half :]))
    left_out = len(text) - len(beginning) - len(end)
    return f"{beginning}\n[{left_out:,} characters are left out here, since there are too many]\n{end}"


class Room:
    """What an llm is sent of one turn, about so many ``tokens``: a question or a result may take half of what is left.

    So each of them finds some, whatever came before it. ``used`` is what has been sent.
    """

    def __init__(self, tokens: int) -> None:
        self._tokens = tokens
        self.used = 0

    def taken(self, text: str) -> str:
        """``text`` as it is sent."""
        text = shortened(text, max((self._tokens - self.used) // 2, _LEAST))
        self._use(text)
        return text

    def step(self, step: Step) -> Step:
        """``step`` as it is sent."""
        self._use(step.text)
        for call in step.calls:
            self._use(dump_json(call.arguments))
        return replace(step, calls=tuple(replace(call, result=self.taken(call.result)) for call in step.calls))

    def _use(self, text: str) -> None:
        self.used += estimated_tokens(text)


def as_sent(turn: Turn, tokens: int) -> Turn:
    """``turn`` as an llm that has ``tokens`` for one was sent it, and is sent it again."""
    room = Room(tokens)
    return Turn(room.taken(turn.question), tuple(map(room.step, turn.steps)))


@dataclass(frozen=True, slots=True)
class Window:
    """How much of a conversation is shown: at most so many of the newest turns, messages, and estimated tokens."""

    turns: int | None = None
    messages: int | None = None
    tokens: int | None = None

    def newest(self, turns: Sequence[Turn]) -> list[Turn]:
        """The last of ``turns`` that fit, oldest first. One that does not is left out, and so is all before it.

        One with too many tokens is shortened: its texts, or, if that is not enough, its calls are left out too.
        """
        kept: list[Turn] = []
        messages = tokens = 0
        for turn in reversed(turns):
            messages += turn.messages
            too_many = any(
                limit is not None and size > limit
                for size, limit in ((len(kept) + 1, self.turns), (messages, self.messages))
            )
            fitting = None if too_many else self._fitting(turn, tokens)
            if fitting is None:
                break
            tokens += fitting.tokens
            kept.append(fitting)
        return kept[::-1]

    def _fitting(self, turn: Turn, tokens: int) -> Turn | None:
        """``turn``, or as much of it as fits after so many ``tokens``."""
        if self.tokens is None:
            return turn
        return next((form for form in _forms(turn) if tokens + form.tokens <= self.tokens), None)


def _forms(turn: Turn) -> Iterator[Turn]:
    """``turn`` as it is, with long texts shortened, and without its calls."""
    yield turn
    short = Turn(shortened(turn.question, SHORT_TEXT), tuple(map(_short, turn.steps)))
    yield short
    calls = sum(len(step.calls) for step in turn.steps)
    if calls:
        yield Turn(short.question, (Step(f"[{calls:,} calls of tools are left out here]\n\n{short.steps[-1].text}"),))


def _short(step: Step) -> Step:
    calls = tuple(replace(call, result=shortened(call.result, SHORT_TEXT)) for call in step.calls)
    return Step(shortened(step.text, SHORT_TEXT), calls)
