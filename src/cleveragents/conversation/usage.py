"""What llm calls used and what they cost: exact sums, and an unknown cost that stays unknown."""

from __future__ import annotations

import datetime as dt
import decimal
import operator
import re
from dataclasses import dataclass, field
from typing import cast

from cleveragents.errors import SessionValidationError
from cleveragents.values.text import optional_text
from cleveragents.values.times import utc_now, utc_time

NANO = 1_000_000_000
"""Nano-dollars in a dollar: the unit in which money is counted and stored."""

MAX_COUNT = 2**63 - 1
"""The largest total of tokens or nano-dollars that both databases hold."""

_MOST_NANO = MAX_COUNT // NANO * NANO

_MONEY = re.compile(r"[0-9]{1,10}(\.[0-9]{1,9})?")

Cost = float | int | decimal.Decimal


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """A session's totals. ``estimated_cost`` is in dollars.

    ``cost_complete`` is False when the cost of something in it is unknown: the true cost is higher then.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    estimated_cost: float = 0.0
    cost_complete: bool = True
    nano_dollars: int = field(init=False, repr=False, compare=False)
    """The cost again, exactly."""

    def __post_init__(self) -> None:
        nano = nano_dollars(self.estimated_cost)
        object.__setattr__(self, "input_tokens", token_count(self.input_tokens, "input_tokens"))
        object.__setattr__(self, "output_tokens", token_count(self.output_tokens, "output_tokens"))
        object.__setattr__(self, "nano_dollars", nano)
        object.__setattr__(self, "estimated_cost", nano / NANO)
        object.__setattr__(self, "cost_complete", bool(self.cost_complete))

    def plus(self, entry: UsageEntry) -> TokenUsage:
        """The totals with one more entry of the ledger in them; they end at what both databases hold."""
        nano = self.nano_dollars + (entry.nano_dollars or 0)
        return TokenUsage(
            min(self.input_tokens + entry.input_tokens, MAX_COUNT),
            min(self.output_tokens + entry.output_tokens, MAX_COUNT),
            dollars(min(nano, _MOST_NANO)),
            self.cost_complete and entry.nano_dollars is not None and nano <= _MOST_NANO,
        )


@dataclass(frozen=True, slots=True)
class UsageEntry:
    """One row of a session's ledger: what one turn used of one llm. A cost of None is unknown.

    ``cached_tokens`` are part of ``input_tokens``, ``reasoning_tokens`` of ``output_tokens``.
    """

    input_tokens: int
    output_tokens: int
    estimated_cost: float | None
    llm: str | None = None
    created_at: dt.datetime = field(default_factory=utc_now)
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    nano_dollars: int | None = field(init=False, repr=False, compare=False)
    """The cost again, exactly."""

    def __post_init__(self) -> None:
        nano = None if self.estimated_cost is None else nano_dollars(self.estimated_cost)
        for name in ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens"):
            object.__setattr__(self, name, token_count(getattr(self, name), name))
        object.__setattr__(self, "nano_dollars", nano)
        object.__setattr__(self, "estimated_cost", None if nano is None else nano / NANO)
        object.__setattr__(self, "llm", optional_text(self.llm, "llm"))
        object.__setattr__(self, "created_at", utc_time(self.created_at, "created_at"))


def token_count(value: int, what: str) -> int:
    """``value`` as a number of tokens; raises SessionValidationError naming ``what``."""
    try:
        count = operator.index(value)
    except TypeError:
        count = -1
    if isinstance(value, bool) or not 0 <= count <= MAX_COUNT:
        raise SessionValidationError(f"{what} must be a whole number from 0 to 2^63-1, not {value!r:.40}")
    return count


def nano_dollars(cost: Cost) -> int:
    """Whole nano-dollars of an amount in dollars, a half rounded to the even neighbour.

    A float counts as the decimal number it is shown as: 0.1 is a tenth. Raises SessionValidationError for what
    is no amount, is negative, or is more than the databases hold.
    """
    if isinstance(cost, bool) or not isinstance(cost, float | int | decimal.Decimal):
        raise SessionValidationError(f"estimated_cost must be a number of dollars, not {cost!r:.40}")
    amount = decimal.Decimal(float.__repr__(cost)) if isinstance(cost, float) else decimal.Decimal(cost)
    if not amount.is_finite() or not 0 <= amount <= MAX_COUNT // NANO:
        raise SessionValidationError(f"estimated_cost must be between 0 and {MAX_COUNT // NANO} dollars, not {cost}")
    return int((amount * NANO).to_integral_value(decimal.ROUND_HALF_EVEN))


def dollars(nano: int) -> float:
    """The amount in dollars for the dataclasses here: a Decimal, from which they take it exactly."""
    return cast("float", decimal.Decimal(nano).scaleb(-9))


def money_text(nano: int) -> str:
    """The amount in dollars as plain decimal digits, such as ``0.005``: money is text in an export."""
    whole, fraction = divmod(nano, NANO)
    return f"{whole}.{fraction:09d}".rstrip("0").rstrip(".")


def parse_money(text: str, what: str) -> int:
    """The nano-dollars of an amount as ``money_text`` writes it; ``what`` names it in the error."""
    if not isinstance(text, str) or not _MONEY.fullmatch(text):
        raise SessionValidationError(f"{what} must be an amount of dollars as text, such as '0.005', not {text!r:.40}")
    return nano_dollars(decimal.Decimal(text))


@dataclass(frozen=True, slots=True)
class Usage:
    """What llm calls used. ``llm`` is "" for a sum over several.

    ``cached_tokens`` are part of ``input_tokens``, ``reasoning_tokens`` of ``output_tokens``. ``cost`` is in dollars,
    None when that of any part is unknown.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    requests: int = 0
    llm: str = ""
    cost: decimal.Decimal | None = None
    reasoning_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.requests + other.requests,
            self.llm if self.llm == other.llm else "",
            None if self.cost is None or other.cost is None else self.cost + other.cost,
            self.reasoning_tokens + other.reasoning_tokens,
        )
