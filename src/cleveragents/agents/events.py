"""What agents tell while they work, and how whoever listens is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from cleveragents.conversation.usage import Usage


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of an llm's answer, as it arrives."""

    agent: str
    text: str


@dataclass(frozen=True, slots=True)
class PromptRead:
    """An llm on this machine has read ``tokens`` of the ``total`` of a long prompt so far."""

    agent: str
    tokens: int
    total: int


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """An llm called a tool; ``arguments`` is what it passed."""

    agent: str
    tool: str
    call_id: str
    arguments: Any


@dataclass(frozen=True, slots=True)
class ToolReturned:
    """A tool answered an llm's call; ``failed`` tells an error's text from a result."""

    agent: str
    tool: str
    call_id: str
    content: Any
    failed: bool = False


@dataclass(frozen=True, slots=True)
class AnswerCutOff:
    """An llm's answer ended before it was whole: ``reason`` says why in one word, ``told`` what to do about it."""

    agent: str
    reason: str
    told: str


@dataclass(frozen=True, slots=True)
class PromptShortened:
    """A prompt of so many ``characters`` was too long for an llm, which is sent its beginning and its end."""

    agent: str
    characters: int


@dataclass(frozen=True, slots=True)
class SettingLeftOut:
    """An llm was asked without ``setting``, such as ``temperature``: its provider's library knows it takes none."""

    agent: str
    setting: str


@dataclass(frozen=True, slots=True)
class HistoryLeftOut:
    """An llm is asked without the oldest ``messages`` of its session: no more fit into its window, or the file's.

    On a context they are the oldest of those that ``history`` of the file lets through.
    """

    messages: int


@dataclass(frozen=True, slots=True)
class LLMUsed:
    """A request to an llm has been answered, and this is what it used; it counts whatever becomes of the answer."""

    agent: str
    usage: Usage


@dataclass(frozen=True, slots=True)
class ToolPrinted:
    """What tool code printed, bounded in length."""

    agent: str
    text: str


@dataclass(frozen=True, slots=True)
class AgentAnswered:
    """An agent has dealt with a message in ``route``, in ``seconds``; ``error`` tells why it failed, if it did."""

    agent: str
    route: str
    seconds: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class ErrorPassedOver:
    """``on_error`` kept an error in ``route`` from being reported: ``agent`` is asked instead, or, where "", nobody."""

    route: str
    error: str
    agent: str = ""


@dataclass(frozen=True, slots=True)
class ContextConflict:
    """``agent`` set or removed ``path`` in the global context, which another agent had changed while it worked.

    ``before`` is what it overwrote, ``after`` what is there now; None also where there was, or is, nothing.
    """

    agent: str
    route: str
    path: tuple[str, ...]
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class TurnAwaited:
    """Another run has held ``place``, such as "context 'notes'", for a second now, and this one goes on waiting."""

    place: str


AgentEvent = (
    TextDelta
    | PromptRead
    | ToolCalled
    | ToolReturned
    | AnswerCutOff
    | PromptShortened
    | SettingLeftOut
    | HistoryLeftOut
    | LLMUsed
    | ToolPrinted
    | AgentAnswered
    | ErrorPassedOver
    | ContextConflict
    | TurnAwaited
)

Listener = Callable[[AgentEvent], None]
"""Called in the run's own thread, with one event after another, before the agent goes on."""

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Hand every event told inside the block, by this task and those it starts, to ``listener``."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def current_listener() -> Listener | None:
    """Whoever listens to this run, if anyone does."""
    return _listener.get()


def tell(event: AgentEvent) -> None:
    """Hand ``event`` to whoever listens to this run, if anyone does."""
    listener = _listener.get()
    if listener is not None:
        listener(event)
