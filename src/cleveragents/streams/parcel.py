"""A message under way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cleveragents.agents.agent import Message, Said

PATH_LENGTH = 12
"""Routes that a message remembers having entered: enough to see a loop, and no more however long it goes round."""


class Parcel:
    """A message under way, and the way it came. Treated as immutable; a plain class because one is made often.

    ``context`` is the global context as it was when the message was handed on. ``leaves`` is what an ``until`` at the
    end of its route has found: whether it goes on outside of the loop. ``weighed`` tells that the run has counted its
    content, and is the one thing that changes.
    """

    __slots__ = ("context", "hops", "leaves", "message", "path", "weighed")

    def __init__(
        self,
        message: Message,
        context: Mapping[str, Any],
        hops: int = 0,
        path: tuple[str, ...] = (),
        leaves: bool | None = None,
        *,
        weighed: bool = False,
    ) -> None:
        self.message = message
        self.context = context
        self.hops = hops
        self.path = path
        self.leaves = leaves
        self.weighed = weighed

    def carrying(
        self,
        content: Any,
        context: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
        said: Sequence[Said] = (),
        cut_off: str = "",
    ) -> Parcel:
        """The same way, another content, and what else is given."""
        old = self.message
        context = self.context if context is None else context
        metadata = old.metadata if metadata is None else metadata
        message = Message(content, context, metadata, old.conversation, said, cut_off)
        return Parcel(message, context, self.hops, self.path)

    def without_conversation(self) -> Parcel:
        """The same message, for agents that see it and nothing else."""
        message = replace(self.message, conversation=None)
        return Parcel(message, self.context, self.hops, self.path, self.leaves, weighed=self.weighed)

    def bound(self, *, out: bool) -> Parcel:
        """The same message, on its way out of the loop, or back into it."""
        return Parcel(self.message, self.context, self.hops, self.path, out, weighed=self.weighed)

    def entering(self, route: str) -> Parcel:
        """The same message, one hop further."""
        path = (*self.path[1 - PATH_LENGTH :], route)
        return Parcel(self.message, self.context, self.hops + 1, path, weighed=self.weighed)
