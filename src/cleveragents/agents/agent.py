"""What an agent is: it takes a message, and gives a reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from cleveragents.conversation.content import content_text
from cleveragents.conversation.transcript import Step, Turn
from cleveragents.conversation.usage import Usage
from cleveragents.values.merge import Removal


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
class Reply:
    """What an agent gives back. Content None means that nothing flows on from here.

    ``changes`` and ``removed`` are what it did to the global context, in the form of ``values.merge``.
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


class Conversation(Protocol):
    """What was said before a message.

    The first llm agent on the message's way takes it, and keeps its own calls of tools in it.
    """

    async def turns(self, tokens: int) -> Sequence[Turn]:
        """The newest turns, oldest first, as many as the configuration says, else as fit into ``tokens``."""

    async def keep(self, agent: str, step: Step) -> None:
        """Store calls of ``agent`` with their results; they are on disk when this returns."""
