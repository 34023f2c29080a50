"""``cleveragents session show`` and ``tail``: what is stored, for people and for programs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from cleveragents.cli.kit.options import format_option, last_option
from cleveragents.cli.kit.output import for_stdout, show_json
from cleveragents.cli.kit.output import show as show_text
from cleveragents.cli.kit.session_id import id_argument
from cleveragents.cli.kit.sessions import pass_sessions
from cleveragents.cli.kit.tool_calls import call_line, result_line
from cleveragents.conversation.arguments import flat_call, kept_arguments
from cleveragents.conversation.message import call_name
from cleveragents.conversation.reserved import FAILED, broken_off, reserved
from cleveragents.values.json import dump_json
from cleveragents.values.text import indented

if TYPE_CHECKING:
    from cleveragents.conversation.message import SessionMessage
    from cleveragents.sessions.service import SessionService
    from cleveragents.sessions.session import SessionSummary

POLL = 0.25
"""Seconds between two looks for new messages."""

_PAGE = 1000


@click.command(epilog="Example: cleveragents session show last --last 5")
@id_argument
@last_option
@format_option
@pass_sessions
def show(sessions: SessionService, id_: str, last: int | None, format_: str) -> None:
    """Show a session and its messages.

    First what is known of it, then its messages with times in UTC, of what tools gave back the first line. As JSON one
    document, as JSON lines one message a line, both with everything.
    """
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
@pass_sessions
def tail(sessions: SessionService, id_: str, count: int, follow: bool, format_: str) -> None:
    """Show the last messages of a session; with --follow also those to come."""
    if follow and format_ == "json":
        raise click.UsageError("--follow has no end, so it cannot be one JSON document; use --format jsonl")
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
        said = _said(message)
        show_text(f"[{message.created_at:%Y-%m-%d %H:%M:%S} UTC] {who}:{f' {said}' if said else ''}")
        for call in message.tool_calls or ():
            show_text(f"  {call_line(call_name(call), kept_arguments(flat_call(call).get('arguments')))}")


def _said(message: SessionMessage) -> str:
    """What a message says, without its calls; of a tool's result the beginning."""
    if message.role == "tool":
        return result_line(message.text, failed=bool(reserved(message.metadata, FAILED)))
    mark = f" [{for_stdout(why)}]" if (why := broken_off(message.metadata)) else ""
    return f"{indented(for_stdout(message.content or ''))}{mark}"


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
            yield f"{name.replace('_', ' ')}: {indented(for_stdout(str(value)))}"
    yield ""
