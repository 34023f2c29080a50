"""``cleveragents session list``, ``show`` and ``tail``: what is stored, for people and for programs."""

from __future__ import annotations

import datetime as dt
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from cleveragents.cli.output import as_typed, format_option, say, show_json, show_rows
from cleveragents.cli.output import show as show_text
from cleveragents.cli.session_id import SessionId, id_argument
from cleveragents.values.json import dump_json

if TYPE_CHECKING:
    from cleveragents.conversation.message import SessionMessage
    from cleveragents.sessions.service import SessionService
    from cleveragents.sessions.session import SessionSummary

POLL = 0.25
"""Seconds between two looks for new messages."""

_PAGE = 1000
_TITLE_WIDTH = 50


class Moment(click.ParamType):  # type: ignore[type-arg] # generic at run time only in newer releases of click
    """A date or a time in ISO 8601, in UTC unless it says otherwise; of a date its first moment, or the end of it."""

    name = "time"

    def __init__(self, *, end_of_day: bool) -> None:
        self._end_of_day = end_of_day

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dt.datetime:
        """The aware time."""
        try:
            moment = dt.datetime.fromisoformat(value)
            if len(value) <= len("2026-11-30") and self._end_of_day:
                moment += dt.timedelta(days=1)
            return moment if moment.utcoffset() is not None else moment.replace(tzinfo=dt.UTC)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is neither a date such as 2026-11-30 nor a time such as 2026-11-30T18:00", param, ctx)


@click.command("list", epilog="Example: cleveragents session list --actor local/assistant --since 2026-11-01")
@click.option("--actor", metavar="NAME", help="Only sessions of this actor, such as local/assistant.")
@click.option("--namespace", metavar="NAME", help="Only sessions of this namespace.")
@click.option("--tag", callback=as_typed, help="Only sessions with this tag.")
@click.option("--since", type=Moment(end_of_day=False), help="Only what changed then or later: a date, or a UTC time.")
@click.option("--until", type=Moment(end_of_day=True), help="Only what changed before, or on that day at the latest.")
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, metavar="N", help="How many.")
@click.option("--after", type=SessionId(), metavar="ID", help="Go on after this session.")
@format_option
def list_(
    actor: str | None,
    namespace: str | None,
    tag: str | None,
    since: dt.datetime | None,
    until: dt.datetime | None,
    limit: int,
    after: str | None,
    format_: str,
) -> None:
    """List sessions, newest activity first; times are in UTC."""
    from cleveragents.sessions.open import open_sessions

    with open_sessions() as sessions:
        found = sessions.list(
            limit=limit + 1,
            after=None if after is None else sessions.find(after),
            actor_name=actor,
            namespace=namespace,
            tag=tag,
            since=since,
            until=until,
        )
    shown = found[:limit]
    if format_ == "table":
        rows: Iterable[dict[str, Any]] = map(_row, shown)
    else:
        rows = (summary.as_cli_dict() for summary in shown)
    show_rows(rows, ["id", "updated", "messages", "actor", "title", "tags"], format_)
    if len(found) > len(shown) > 0:
        say(f"there are more; 'cleveragents session list --after {shown[-1].session_id}' goes on")
    elif not found and format_ == "table":
        narrowed = any(value is not None for value in (after, actor, namespace, tag, since, until))
        say("no session matches" if narrowed else "there are no sessions; 'cleveragents session create' makes one")


def _row(summary: SessionSummary) -> dict[str, Any]:
    title = summary.title or ""
    return {
        "id": summary.session_id,
        "updated": f"{summary.updated_at:%Y-%m-%d %H:%M:%S}",
        "messages": summary.message_count,
        "actor": summary.actor_name,
        "title": title if len(title) <= _TITLE_WIDTH else f"{title[: _TITLE_WIDTH - 1]}…",
        "tags": ", ".join(summary.tags),
    }


@click.command(epilog="Example: cleveragents session show last --last 5")
@id_argument
@click.option("--last", type=click.IntRange(min=0), metavar="N", help="Only the last N messages.")
@format_option
def show(id_: str, last: int | None, format_: str) -> None:
    """Show a session: what is known of it, then its messages with times in UTC.

    As JSON one document, as JSON lines one message a line.
    """
    from cleveragents.sessions.open import open_sessions

    with open_sessions() as sessions:
        session_id = sessions.find(id_)
        summary = sessions.summary(session_id)
        messages = _all(sessions, summary) if last is None else iter(sessions.last_messages(session_id, last))
        if format_ == "json":
            show_json(summary.as_cli_dict() | {"messages": [message.as_dict() for message in messages]})
            return
        if format_ == "table":
            for line in _facts(summary):
                show_text(line)
        _show_messages(messages, format_)


@click.command(epilog="Example: cleveragents session tail last --follow")
@id_argument
@click.option("-n", "count", type=click.IntRange(min=0), default=10, show_default=True, help="How many messages.")
@click.option("-f", "--follow", is_flag=True, help="Go on with what other processes add, until Ctrl-C.")
@format_option
def tail(id_: str, count: int, follow: bool, format_: str) -> None:
    """Show the last messages of a session; with --follow also those to come."""
    from cleveragents.sessions.open import open_sessions

    if follow and format_ == "json":
        raise click.UsageError("--follow has no end, so it cannot be one JSON document; use --format jsonl")
    with open_sessions() as sessions:
        session_id = sessions.find(id_)
        messages = sessions.last_messages(session_id, count)
        if format_ == "json":
            show_json([message.as_dict() for message in messages])
            return
        # Between the two calls others may add messages, but never take one away.
        following = messages[-1].sequence + 1 if messages else sessions.count(session_id)
        _show_messages(messages, format_)
        while follow:
            sys.stdout.flush()
            time.sleep(POLL)
            added = sessions.messages(session_id, offset=following, limit=_PAGE)
            _show_messages(added, format_)
            following += len(added)


def _all(sessions: SessionService, summary: SessionSummary) -> Iterator[SessionMessage]:
    """The messages that the summary counts, in pages, so that a long session needs little memory."""
    for start in range(0, summary.message_count, _PAGE):
        limit = min(_PAGE, summary.message_count - start)
        yield from sessions.messages(summary.session_id, offset=start, limit=limit)


def _show_messages(messages: Iterable[SessionMessage], format_: str) -> None:
    for message in messages:
        if format_ == "jsonl":
            show_json(message.as_dict())
            continue
        who = message.role if message.agent is None else f"{message.role} ({message.agent})"
        mark = " [interrupted]" if message.metadata.get("interrupted") else ""
        show_text(f"[{message.created_at:%Y-%m-%d %H:%M:%S} UTC] {who}: {message.text}{mark}")


def _facts(summary: SessionSummary) -> Iterator[str]:
    facts = summary.as_cli_dict()
    usage = summary.token_usage
    cost = f"{usage.estimated_cost:.9f}".rstrip("0").rstrip(".")
    facts["token_usage"] = (
        f"{usage.input_tokens} in, {usage.output_tokens} out, {cost} dollars{'' if usage.cost_complete else ' or more'}"
    )
    facts["linked_plan_ids"] = ", ".join(summary.linked_plan_ids)
    facts["tags"] = ", ".join(summary.tags)
    facts["metadata"] = dump_json(summary.metadata) if summary.metadata else None
    for name, value in facts.items():
        if value not in {None, ""}:
            yield f"{name.replace('_', ' ')}: {value}"
    yield ""
