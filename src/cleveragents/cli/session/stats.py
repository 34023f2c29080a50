"""``cleveragents session stats``: figures over all sessions, with bars on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from cleveragents.cli.kit.options import format_option
from cleveragents.cli.kit.output import say, show_json
from cleveragents.cli.kit.sessions import pass_sessions
from cleveragents.cli.kit.table import show_rows

if TYPE_CHECKING:
    from cleveragents.sessions.service import SessionService
    from cleveragents.sessions.statistics import Statistics, Tally

SHOWN_DAYS = 30
_BAR = 20
_COLUMNS = ["sessions", "messages", "calls", "input_tokens", "output_tokens", "cost"]


@click.command(epilog="Example: cleveragents session stats --format json")
@format_option
@pass_sessions
def stats(sessions: SessionService, format_: str) -> None:
    """Show what was begun and used, by day (UTC), actor and llm.

    A day has the sessions that were begun on it with all their messages, and the llm calls that were made on it.
    The table shows the last 30 days with anything, on a terminal with bars; JSON has all.
    """
    found = sessions.statistics()
    sections = _sections(found)
    if format_ == "json":
        show_json({"total": _facts(found.total)} | {by: list(_rows(by, part)) for by, part in sections.items()})
    elif format_ == "jsonl":
        for by, part in sections.items():
            show_rows(({"by": by} | row for row in _rows(by, part)), [], format_)
    elif not found.total.sessions and not found.total.calls:
        say("there are no sessions; 'cleveragents session create' makes one")
    else:
        sections["day"] = dict(list(sections["day"].items())[-SHOWN_DAYS:])
        for by, part in sections.items():
            if part:
                _show(by, part)
        _show("total", {"all": found.total})


def _sections(found: Statistics) -> dict[str, dict[str | None, Tally]]:
    days: dict[str | None, Tally] = {day.isoformat(): tally for day, tally in found.by_day.items()}
    return {"day": days, "actor": found.by_actor, "llm": found.by_llm}


def _rows(by: str, part: Mapping[str | None, Tally]) -> Iterator[dict[str, Any]]:
    for name, tally in part.items():
        yield {by: name} | _facts(tally)


def _facts(tally: Tally) -> dict[str, Any]:
    return {
        "sessions": tally.sessions,
        "messages": tally.messages,
        "calls": tally.calls,
        "input_tokens": tally.input_tokens,
        "output_tokens": tally.output_tokens,
        "estimated_cost": tally.estimated_cost,
        "cost_complete": tally.cost_complete,
    }


def _show(by: str, part: Mapping[str | None, Tally]) -> None:
    """A table; on a terminal with a bar for the tokens, or for the messages where no tokens are known."""
    columns = [by, *(_COLUMNS[2:] if by == "llm" else _COLUMNS)]
    bars = sys.stdout.isatty() and by != "total"
    weights = {name: tally.input_tokens + tally.output_tokens for name, tally in part.items()}
    if not any(weights.values()):
        weights = {name: tally.messages for name, tally in part.items()}
    largest = max(weights.values(), default=0) or 1
    rows = []
    for name, tally in part.items():
        cost = f"{tally.estimated_cost:.4f}{'' if tally.cost_complete else ' or more'}"
        row = {by: "(none)" if name is None else name, **_facts(tally), "cost": cost}
        rows.append(row | {"": "█" * -(-weights[name] * _BAR // largest)} if bars else row)
    show_rows(rows, [*columns, ""] if bars else columns, "table")
    if by != "total":
        print()
