"""Figures over many sessions: what was begun, and what llm calls used, by day, actor and llm."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field

from cleveragents.conversation.usage import NANO


@dataclass(slots=True)
class Tally:
    """Sums. ``calls`` are entries of the ledger, one for each turn and llm; money is exact inside.

    ``cost_complete`` is False when the cost of something in it is unknown.
    """

    sessions: int = 0
    messages: int = 0
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    nano_dollars: int = 0
    cost_complete: bool = True

    @property
    def estimated_cost(self) -> float:
        """The known cost in dollars."""
        return self.nano_dollars / NANO

    def add(self, other: Tally) -> None:
        """Count ``other`` in."""
        self.sessions += other.sessions
        self.messages += other.messages
        self.calls += other.calls
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens
        self.nano_dollars += other.nano_dollars
        self.cost_complete = self.cost_complete and other.cost_complete


@dataclass(frozen=True, slots=True)
class Count:
    """A tally of one day (UTC) and one actor. ``llm`` is None also for what is not about an llm."""

    day: dt.date
    actor_name: str | None
    llm: str | None
    tally: Tally


@dataclass(slots=True)
class Statistics:
    """The same tallies summed in several ways.

    A day has the sessions that were begun on it, with all their messages, and the calls that were made on it. What
    no llm was named for stands under None.
    """

    total: Tally = field(default_factory=Tally)
    by_day: dict[dt.date, Tally] = field(default_factory=dict)
    by_actor: dict[str | None, Tally] = field(default_factory=dict)
    by_llm: dict[str | None, Tally] = field(default_factory=dict)


def statistics(counts: Iterable[Count]) -> Statistics:
    """The sums of ``counts``: days in order, actors and llms with most tokens first."""
    found = Statistics()
    for count in counts:
        found.total.add(count.tally)
        found.by_day.setdefault(count.day, Tally()).add(count.tally)
        found.by_actor.setdefault(count.actor_name, Tally()).add(count.tally)
        if count.tally.calls:
            found.by_llm.setdefault(count.llm, Tally()).add(count.tally)
    found.by_day = dict(sorted(found.by_day.items()))
    found.by_actor = _largest_first(found.by_actor)
    found.by_llm = _largest_first(found.by_llm)
    return found


def _largest_first(tallies: dict[str | None, Tally]) -> dict[str | None, Tally]:
    def rank(item: tuple[str | None, Tally]) -> tuple[int, int, str]:
        name, tally = item
        return -tally.input_tokens - tally.output_tokens, -tally.messages, name or ""

    return dict(sorted(tallies.items(), key=rank))
