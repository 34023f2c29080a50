"""Times as this project keeps them: aware, in UTC, to the microsecond."""

from __future__ import annotations

import datetime as dt

from cleveragents.errors import SessionValidationError

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


def utc_now() -> dt.datetime:
    """The time it is, in UTC."""
    return dt.datetime.now(dt.UTC)


def utc_time(value: dt.datetime, what: str) -> dt.datetime:
    """``value`` in UTC; ``what`` names it in the error when it is no time, or one without a time zone."""
    if not isinstance(value, dt.datetime) or value.utcoffset() is None:
        raise SessionValidationError(f"{what} must be a time with a time zone, not {value!r:.60}")
    return value.astimezone(dt.UTC)


def time_text(moment: dt.datetime) -> str:
    """``moment`` in ISO 8601, UTC, with microseconds and offset."""
    return moment.astimezone(dt.UTC).isoformat(timespec="microseconds")


def parse_time(text: str, what: str) -> dt.datetime:
    """The time that an ISO 8601 text with an offset (or ``Z``) names; ``what`` names it in the error."""
    try:
        return utc_time(dt.datetime.fromisoformat(text), what)
    except (ValueError, TypeError, OverflowError):
        raise SessionValidationError(f"{what} must be an ISO 8601 time with an offset, not {text!r:.60}") from None


def microseconds(moment: dt.datetime) -> int:
    """Whole microseconds since 1970, exactly."""
    return (moment - _EPOCH) // _MICROSECOND


def from_microseconds(count: int) -> dt.datetime:
    """The time ``count`` microseconds after 1970, exactly."""
    return _EPOCH + dt.timedelta(0, 0, count)
