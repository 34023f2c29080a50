"""What is said of the session that a run goes on with."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from cleveragents.values.times import utc_now

if TYPE_CHECKING:
    from cleveragents.sessions.session import SessionSummary

_UNITS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


def going_on_line(summary: SessionSummary) -> str:
    """Which session it is: its id and title, how many messages it has, how long ago it was used."""
    title = "" if summary.title is None else f" {' '.join(summary.title.split())!r}"
    messages = _counted(summary.message_count, "message")
    return f"session: {summary.session_id}{title} ({messages}, last used {age(utc_now() - summary.updated_at)})"


def age(time: dt.timedelta) -> str:
    """How long ago ``time`` is, in its largest unit."""
    seconds = int(time.total_seconds())
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{_counted(seconds // size, unit)} ago"
    return "just now"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
