"""A message under way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cleveragents.agents.base import Message

PATH_LENGTH = 12
"""Routes that a message remembers having entered: enough to see a loop, and no more however long it goes round."""


class Parcel:
    """A message under way, and the way it came. Treated as immutable; a plain class because one is made often."""

    __slots__ = ("hops", "message", "path")

    def __init__(self, message: Message, hops: int = 0, path: tuple[str, ...] = ()) -> None:
        self.message = message
        self.hops = hops
        self.path = path

    def carrying(self, content: Any, context: Mapping[str, Any], metadata: Mapping[str, Any] | None = None) -> Parcel:
        """The same way, another content."""
        message = Message(content, context, self.message.metadata if metadata is None else metadata)
        return Parcel(message, self.hops, self.path)

    def entering(self, route: str) -> Parcel:
        """The same message, one hop further."""
        return Parcel(self.message, self.hops + 1, (*self.path[1 - PATH_LENGTH :], route))
