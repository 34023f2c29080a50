"""``cleveragents session list``."""

from __future__ import annotations

import datetime as dt
import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from cleveragents.cli.kit.arguments import as_typed
from cleveragents.cli.kit.options import format_option
from cleveragents.cli.kit.output import say
from cleveragents.cli.kit.session_id import SessionId
from cleveragents.cli.kit.sessions import pass_sessions
from cleveragents.cli.kit.table import show_rows

if TYPE_CHECKING:
    from cleveragents.sessions.service import SessionService
    from cleveragents.sessions.session import SessionSummary

_TITLE_WIDTH = 50
_DEFAULT_LIMIT = 20


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
@click.option(
    "--limit", type=click.IntRange(min=0), default=_DEFAULT_LIMIT, show_default=True, metavar="N", help="How many."
)
@click.option("--after", type=SessionId(), metavar="ID", help="Go on after this session.")
@format_option
@pass_sessions
def list_(
    sessions: SessionService,
    actor: str | None,
    namespace: str | None,
    tag: str | None,
    since: dt.datetime | None,
    until: dt.datetime | None,
    limit: int,
    after: str | None,
    format_: str,
) -> None:
    """List sessions, newest activity first.

    Times are in UTC.
    """
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
        times = {name: time.isoformat() for name, time in (("since", since), ("until", until)) if time is not None}
        filters = {"actor": actor, "namespace": namespace, "tag": tag, **times}
        given = [f"--{name} {shlex.quote(value)} " for name, value in filters.items() if value is not None]
        size = "" if limit == _DEFAULT_LIMIT else f"--limit {limit} "
        after_last = f"--after {shown[-1].session_id}"
        say(f"there are more; 'cleveragents session list {''.join(given)}{size}{after_last}' goes on")
    elif not found and format_ == "table":
        narrowed = any(value is not None for value in (after, actor, namespace, tag, since, until))
        say("no session matches" if narrowed else "there are no sessions; 'cleveragents session create' makes one")


def _row(summary: SessionSummary) -> dict[str, Any]:
    # In quotes, since nobody has given it this title.
    title = summary.title or (f'"{summary.first_words}"' if summary.first_words else "")
    return {
        "id": summary.session_id,
        "updated": f"{summary.updated_at:%Y-%m-%d %H:%M:%S}",
        "messages": summary.message_count,
        "actor": summary.actor_name,
        "title": title if len(title) <= _TITLE_WIDTH else f"{title[: _TITLE_WIDTH - 1]}…",
        "tags": ", ".join(summary.tags),
    }
