"""What flows between agents, what an agent is, and what it tells while it works."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol, runtime_checkable

from cleveragents.domain.history import Step, Turn, content_text
from cleveragents.domain.merge import Removal


class Conversation(Protocol):
    """What was said before a message. The first llm agent on the message's way takes it, and adds its tool calls."""

    async def turns(self, tokens: int) -> Sequence[Turn]:
        """The newest turns, oldest first, as many as the configuration says, else as fit into ``tokens``."""

    async def keep(self, agent: str, step: Step) -> None:
        """Store calls of ``agent`` with their results; they are on disk when this returns."""


@dataclass(frozen=True, slots=True)
class Message:
    """What flows through a network; never changed, only replaced.

    ``content`` is text or another JSON value, ``context`` the global context as it was when the message was
    handed on, ``metadata`` whatever travels beside the content. ``conversation`` stays with
    a message, and with what comes of it, until an agent that ``takes_conversation`` has replied: an llm agent.
    """

    content: Any
    context: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    conversation: Conversation | None = None

    @property
    def text(self) -> str:
        """The content as an llm reads it: text as it is, any other value as JSON."""
        return content_text(self.content)


@dataclass(frozen=True, slots=True)
class Usage:
    """What llm calls used. ``cached_tokens`` are part of ``input_tokens``; ``llm`` is "" for a sum over several.

    ``cost`` is in dollars, None when that of any part is unknown.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    requests: int = 0
    llm: str = ""
    cost: Decimal | None = None

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.requests + other.requests,
            self.llm if self.llm == other.llm else "",
            None if self.cost is None or other.cost is None else self.cost + other.cost,
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent gives back. Content None means that nothing flows on from here.

    ``changes`` and ``removed`` are what it did to the global context, in the form of ``domain.merge``.
    """

    content: Any
    changes: Mapping[str, Any] = field(default_factory=dict)
    removed: Sequence[Removal] = ()
    usage: Usage | None = None


@runtime_checkable
class Agent(Protocol):
    """Something that takes a message and gives a reply.

    ``process`` raises AgentError when it fails, and has changed nothing then. It may run several times at
    once, and ends promptly when its task is cancelled.
    """

    @property
    def name(self) -> str:
        """The agent's name in its network."""

    async def process(self, message: Message) -> Reply:
        """The reply to ``message``, whose context the agent sees and must not change in place."""


# --- what an agent tells while it works -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of an llm's answer, as it arrives."""

    agent: str
    text: str


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


AgentEvent = (
    TextDelta | ToolCalled | ToolReturned | LLMUsed | ToolPrinted | AgentAnswered | ErrorPassedOver | ContextConflict
)
Listener = Callable[[AgentEvent], None]

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
