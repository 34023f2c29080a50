"""How sessions are written into rows and read back, alike for both databases."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from cleveragents.conversation.message import MessageDraft, MessageRole, SessionMessage, stored_message
from cleveragents.conversation.usage import TokenUsage, UsageEntry, dollars
from cleveragents.sessions.linked_plan import LinkedPlan
from cleveragents.sessions.session import AutomationLevel, Session, SessionSummary
from cleveragents.sessions.sql.database import Parameters, Rows
from cleveragents.sessions.statistics import Count, Tally
from cleveragents.values.json import dump_json, load_json
from cleveragents.values.text import first_words
from cleveragents.values.times import from_microseconds, microseconds

# PostgreSQL has no NUL in text, so on both databases NUL is kept as this character and "0", and the character
# itself, which hardly any text contains, doubled. In JSON text both are escaped already.
_ESCAPE = "\x10"
_ESCAPED = re.compile(f"{_ESCAPE}(.)", re.DOTALL)

_ROLES = {role.value: role for role in MessageRole}

Row = Mapping[str, Any]
_Kind = TypeVar("_Kind", dict[str, Any], list[Any])


def to_text(text: str | None) -> str | None:
    """``text`` as both databases can keep it."""
    if text is None or ("\x00" not in text and _ESCAPE not in text):
        return text
    return text.replace(_ESCAPE, _ESCAPE * 2).replace("\x00", f"{_ESCAPE}0")


def from_text(text: str) -> str:
    """The text that ``to_text`` was given."""
    if _ESCAPE not in text:
        return text
    return _ESCAPED.sub(lambda match: "\x00" if match[1] == "0" else match[1], text)


def _text_or_none(text: str | None) -> str | None:
    return None if text is None else from_text(text)


def _to_json(value: Any) -> str | None:
    return None if value is None else dump_json(value)


def _json(text: str, kind: type[_Kind]) -> _Kind:
    value = load_json(text)
    if not isinstance(value, kind):
        raise ValueError(f"{text!r:.40} is no {'object' if kind is dict else 'list'}")  # noqa: TRY004 - it is damage
    return value


def message_row(session_id: str, sequence: int, message: MessageDraft | SessionMessage, created_at: int) -> Parameters:
    """The row of a message; ``created_at`` in microseconds."""
    return {
        "session_id": session_id,
        "sequence": sequence,
        "role": str(message.role),
        "content": to_text(message.content),
        "tool_call_id": to_text(message.tool_call_id),
        "tool_calls": _to_json(message.tool_calls),
        "parts": _to_json(message.parts),
        "agent": to_text(message.agent),
        "metadata": _to_json(message.metadata or None),
        "created_at": created_at,
    }


def read_messages(rows: Rows) -> list[SessionMessage]:
    """The messages of what the statements ``messages`` and ``last_messages`` give."""
    # No text or JSON here is ever empty; what is None costs nothing.
    return [
        stored_message(
            sequence,
            _ROLES[role],
            content and from_text(content),
            tool_call_id and from_text(tool_call_id),
            tool_calls and _json(tool_calls, list),
            parts and _json(parts, list),
            agent and from_text(agent),
            _json(metadata, dict) if metadata else {},
            from_microseconds(created_at),
        )
        for sequence, role, content, tool_call_id, tool_calls, parts, agent, metadata, created_at in rows.columns(
            "sequence",
            "role",
            "content",
            "tool_call_id",
            "tool_calls",
            "parts",
            "agent",
            "metadata",
            "created_at",
        )
    ]


def session_row(session: Session | SessionSummary, imported_checksum: str | None, activity: int) -> Parameters:
    """The row of a session."""
    return {
        "id": session.session_id,
        "namespace": session.namespace,
        "actor_name": session.actor_name,
        "forked_from": session.forked_from,
        "imported_checksum": imported_checksum,
        "message_count": session.message_count,
        "created_at": microseconds(session.created_at),
        "updated_at": microseconds(session.updated_at),
        "activity": activity,
        **changeable(session),
    }


def words_of_user(message: MessageDraft | SessionMessage) -> str | None:
    """The beginning of ``message``, if it is the user's."""
    return to_text(first_words(message.content)) if message.role == "user" and message.content else None


def changeable(session: Session | SessionSummary) -> dict[str, Any]:
    """The columns that can change after a session was made, but for those that every change sets."""
    return {
        "title": to_text(session.title),
        "automation_level": session.automation_level and str(session.automation_level),
        "metadata": dump_json(session.metadata),
        "input_tokens": session.token_usage.input_tokens,
        "output_tokens": session.token_usage.output_tokens,
        "cost_nano": session.token_usage.nano_dollars,
        "cost_complete": int(session.token_usage.cost_complete),
    }


def read_summary(row: Row, plans: Sequence[LinkedPlan], tags: Sequence[str]) -> SessionSummary:
    """The summary of a row of the statements ``summary`` and ``page``."""
    level = row["automation_level"]
    return SessionSummary(
        session_id=row["id"],
        namespace=row["namespace"],
        actor_name=row["actor_name"],
        title=_text_or_none(row["title"]),
        automation_level=None if level is None else AutomationLevel(level),
        message_count=whole_number(row["message_count"]),
        token_usage=TokenUsage(
            row["input_tokens"], row["output_tokens"], dollars(row["cost_nano"]), bool(row["cost_complete"])
        ),
        linked_plans=list(plans),
        tags=list(tags),
        forked_from=row["forked_from"],
        metadata=_json(row["metadata"], dict),
        created_at=from_microseconds(row["created_at"]),
        updated_at=from_microseconds(row["updated_at"]),
        activity=whole_number(row["activity"]),
        first_words=_text_or_none(row["first_words"]),
    )


def whole_number(value: Any) -> int:
    """``value`` if it is a number of ours. Raises ValueError: other programs' tables take anything."""
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r:.40} is no whole number")
    return value


def filter_values(name: str, value: Any) -> Parameters:
    """What the condition ``filter NAME`` is given for one field of a SessionFilter."""
    if name == "id_prefix":
        # After every character of an id.
        return {"id_prefix": value, "id_prefix_end": f"{value}~"}
    return {name: microseconds(value) if isinstance(value, dt.datetime) else value}


def read_started(row: Row) -> Count:
    """The count of a row of the statement ``started``. Sums are decimals on PostgreSQL."""
    tally = Tally(sessions=row["sessions"], messages=int(row["messages"]))
    return Count(_date(row["day"]), row["actor_name"], None, tally)


def read_used(row: Row) -> Count:
    """The count of a row of the statement ``used``."""
    tally = Tally(
        calls=row["calls"],
        input_tokens=int(row["input_tokens"]),
        output_tokens=int(row["output_tokens"]),
        nano_dollars=int(row["cost_nano"] or 0),
        cost_complete=row["known"] == row["calls"],
    )
    return Count(_date(row["day"]), row["actor_name"], _text_or_none(row["llm"]), tally)


def _date(day: int) -> dt.date:
    return dt.date.fromordinal(day + 1)


def plan_row(session_id: str, position: int, plan: LinkedPlan) -> Parameters:
    """The row of a linked plan."""
    return {
        "session_id": session_id,
        "ordinal": position,
        "plan_id": plan.plan_id,
        "phase": to_text(plan.phase),
        "state": to_text(plan.state),
    }


def read_plan(row: Row) -> LinkedPlan:
    """The plan of a row of the statements ``plans`` and ``page_plans``."""
    return LinkedPlan(row["plan_id"], _text_or_none(row["phase"]), _text_or_none(row["state"]))


def usage_row(session_id: str, entry: UsageEntry) -> Parameters:
    """The row of an entry of the ledger."""
    return {
        "session_id": session_id,
        "llm": to_text(entry.llm),
        "input_tokens": entry.input_tokens,
        "output_tokens": entry.output_tokens,
        "cost_nano": entry.nano_dollars,
        "created_at": microseconds(entry.created_at),
        "cached_tokens": entry.cached_tokens,
        "reasoning_tokens": entry.reasoning_tokens,
    }


def read_usage(row: Row) -> UsageEntry:
    """The entry of a row of the statement ``usage``."""
    return UsageEntry(
        row["input_tokens"],
        row["output_tokens"],
        None if row["cost_nano"] is None else dollars(row["cost_nano"]),
        _text_or_none(row["llm"]),
        from_microseconds(row["created_at"]),
        row["cached_tokens"],
        row["reasoning_tokens"],
    )
