"""What one run of a network may put out, so that routes that split in a loop come to an end."""

from __future__ import annotations

from typing import Any

from cleveragents.agents.agent import Message
from cleveragents.config.models import LimitsConfig
from cleveragents.errors import StreamError
from cleveragents.streams.parcel import Parcel

_VALUE_BYTES = 8
"""What a value of JSON counts for beside its text, so that a list of a million zeros is not nothing."""


class Budget:
    """Messages and bytes that a run may still put out; ``exceeded`` is the error that ends the run, once it is over.

    Each message at the input brings as much as ``limits`` says, so that a long stream of them is not a flood.
    """

    def __init__(self, limits: LimitsConfig) -> None:
        self._limits = limits
        self._messages = 0
        self._bytes = 0
        self.exceeded: StreamError | None = None

    def grow(self) -> None:
        """One more message has come in at the input."""
        self._messages += self._limits.messages
        self._bytes += self._limits.bytes

    def takes(self, route: str, parcel: Parcel, messages: int = 1) -> bool:
        """Whether ``parcel`` may go on, so many times: it is counted, and its content once, wherever it goes."""
        if self.exceeded is None:
            self._messages -= messages
            if not parcel.weighed:
                parcel.weighed = True
                self._bytes -= _size(parcel.message.content)
            self._look(route, parcel)
        return self.exceeded is None

    def takes_error(self, route: str) -> bool:
        """Whether one more error may be kept."""
        if self.exceeded is None:
            self._messages -= 1
            self._look(route)
        return self.exceeded is None

    def weigh(self, changes: Any) -> None:
        """Count what an agent adds to the global context; the next message sees whether it was too much."""
        self._bytes -= _size(changes)

    def _look(self, route: str, parcel: Parcel | None = None) -> None:
        if self._messages >= 0 and self._bytes >= 0:
            return
        name = "messages" if self._messages < 0 else "bytes"
        self.exceeded = StreamError(
            route,
            f"the run has put out more than {getattr(self._limits, name):,} {name}, and ends here; "
            f"end its loops sooner, or raise limits: {{{name}: …}} in the file",
        )
        self.exceeded.message = _without_conversation(parcel)


def _without_conversation(parcel: Parcel | None) -> Message | None:
    return None if parcel is None else parcel.without_conversation().message


def _size(value: Any) -> int:
    """About how many bytes a JSON value holds."""
    size = 0
    ahead = [value]
    while ahead:
        item = ahead.pop()
        if isinstance(item, str):
            size += len(item) if item.isascii() else len(item.encode(errors="replace"))
        elif isinstance(item, dict):
            ahead += item.keys()
            ahead += item.values()
        elif isinstance(item, list):
            ahead += item
        elif isinstance(item, int):
            size += item.bit_length() // 8
        size += _VALUE_BYTES
    return size
