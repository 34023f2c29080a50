"""What running a tool's code may use, in the sandbox and outside of it."""

from __future__ import annotations

from dataclasses import dataclass

from cleveragents.errors import InvalidSettingError

TIME_LIMIT = 5.0
"""Seconds that code may run, unless its agent says otherwise."""

MEMORY_LIMIT = 256_000_000
"""Bytes that code may use, unless its agent says otherwise."""

SIZE_LIMIT = 8_000_000
"""Bytes that a message, a result or a context may have on its way into or out of code."""

PRINT_LIMIT = 65_536
"""Characters kept of what code prints."""

PROCESSES = 2
"""Processes that run code at the same time; further calls wait their turn."""

_LONGEST_TIME = 86_400.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call of code may use: ``time`` in seconds, ``memory`` in bytes. Raises InvalidSettingError."""

    time: float = TIME_LIMIT
    memory: int = MEMORY_LIMIT

    def __post_init__(self) -> None:
        if not 0 < self.time <= _LONGEST_TIME:
            raise InvalidSettingError(f"time_limit {self.time} is not a number of seconds above 0 and up to a day")
        if self.memory <= 0:
            raise InvalidSettingError(f"memory_limit {self.memory} is not a number of bytes above 0")

    @property
    def time_text(self) -> str:
        """How an error names the time limit."""
        return f"stopped at the time limit of {self.time:g} s"

    @property
    def memory_text(self) -> str:
        """How an error names the memory limit."""
        return f"stopped at the memory limit of {self.memory / 1_000_000:g} MB"
