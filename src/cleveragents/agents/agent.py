"""What an agent is: it takes a message, and gives a reply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from cleveragents.conversation.content import content_text
from cleveragents.conversation.transcript import Step, Turn
from cleveragents.conversation.usage import Usage
from cleveragents.values.merge import Removal

ANSWERED_BY = "agent"
"""Key of a message's metadata: the agent that its content came from, or several, with commas."""


@dataclass(frozen=True, slots=True)
class Said:
    """What an llm said in one step; ``kept`` tells that it is stored already, with the calls it made in that step."""

    text: str
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """What flows through a network; never changed, only replaced.

    ``content`` is text or another JSON value, ``context`` the global context as it was when the message was
    handed on, ``metadata`` whatever travels beside the content. ``conversation`` stays with
    a message, and with what comes of it, until an agent that ``takes_conversation`` has replied: an llm agent.
    ``said`` is what an llm said step by step, the content being the last of it, until something replaces the content;
    ``cut_off`` is why an llm's answer was cut off before it was whole, in one word, as long.
    """

    content: Any
    context: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    conversation: Conversation | None = None
    said: Sequence[Said] = ()
    cut_off: str = ""

    @property
    def text(self) -> str:
        """The content as an llm reads it: text as it is, any other value as JSON."""
        return content_text(self.content)

    @property
    def agent(self) -> str:
        """The agent that the content came from, or several, with commas; "" where none did."""
        return str(self.metadata.get(ANSWERED_BY, ""))

    @property
    def output(self) -> Any:
        """What a person is given, where the message is an output: all that an llm said, else the content."""
        return said_text(self.said) if self.said else self.content

    @property
    def unkept_text(self) -> str:
        """The output as text, without the steps that are stored already."""
        return said_text(each for each in self.said if not each.kept) if self.said else self.text


def said_text(said: Iterable[Said]) -> str:
    """What was said in several steps, each a paragraph of its own."""
    return "\n\n".join(each.text for each in said if each.text)


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent gives back. Content None means that nothing flows on from here.

    ``changes`` and ``removed`` are what it did to the global context, in the form of ``values.merge``. ``said`` is the
    content step by step, where an llm called tools in between: later steps of a route get the last of it, the answer;
    an output is all of it. ``cut_off`` is why an llm's answer was cut off, in one word; "" when it is whole.
    """

    content: Any
    changes: Mapping[str, Any] = field(default_factory=dict)
    removed: Sequence[Removal] = ()
    usage: Usage | None = None
    said: Sequence[Said] = ()
    cut_off: str = ""


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


class Conversation(Protocol):
    """What was said before a message.

    The first llm agent on the message's way takes it, and keeps its own calls of tools in it.
    """

    async def turns(self, tokens: int, turn_tokens: int) -> Sequence[Turn]:
        """The newest turns, oldest first, as many as the configuration says, else as fit into ``tokens``.

        Each is given as an llm is sent it that has ``turn_tokens`` for one turn: see conversation/window.py.
        """

    def composed(self, prompt: str) -> str:
        """``prompt`` as an llm is asked: with what was said before in front of it, where that is not in ``turns``."""

    async def keep(self, agent: str, step: Step) -> None:
        """Store calls of ``agent`` with their results; they are on disk when this returns."""
