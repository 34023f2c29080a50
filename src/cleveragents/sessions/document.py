"""The export document of a session: written from the fields of one, and read back into them.

It is read by version, checksum, then every field; the first fault names its place. What order and rules the fields
have among each other is the session's own to check, which is made of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, TypeVar

from cleveragents.conversation.message import SessionMessage
from cleveragents.conversation.reserved import RESERVED, moved_of_message, moved_of_session
from cleveragents.conversation.usage import TokenUsage, UsageEntry, dollars, money_text, parse_money
from cleveragents.errors import InvalidInputError, SessionChecksumError, SessionImportError
from cleveragents.sessions.linked_plan import LinkedPlan, plan_ids
from cleveragents.values.canonical import canonical_json, checksum, digest
from cleveragents.values.ids import parse_ulid
from cleveragents.values.json import IMPORT_LIMIT, json_object, json_value, load_json
from cleveragents.values.times import parse_time, time_text

SCHEMA_VERSION = "1.0"
"""Version of the document that this release writes."""

KEYS = (
    "schema_version",
    "session_id",
    "namespace",
    "actor_name",
    "title",
    "automation_level",
    "created_at",
    "updated_at",
    "token_usage",
    "usage_entries",
    "linked_plan_ids",
    "linked_plans",
    "tags",
    "forked_from",
    "metadata",
    "messages",
    "checksum",
)
"""The keys of a document in their order; all are always there."""

_VERSION = re.compile(r"(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})")

Item = TypeVar("Item")


# --- writing --------------------------------------------------------------------------------------------------------


def document_of(session: Mapping[str, Any]) -> dict[str, Any]:
    """The export document of a session, given by its fields, with its checksum.

    Raises InvalidInputError for what no document can hold.
    """
    level = session["automation_level"]
    messages = [_message_document(message) for message in session["messages"]]
    body = {
        "schema_version": SCHEMA_VERSION,
        "session_id": session["session_id"],
        "namespace": session["namespace"],
        "actor_name": session["actor_name"],
        "title": session["title"],
        "automation_level": None if level is None else str(level),
        "created_at": time_text(session["created_at"]),
        "updated_at": time_text(session["updated_at"]),
        "token_usage": _usage_document(session["token_usage"]),
        "usage_entries": [_entry_document(entry) for entry in session["usage_entries"]],
        "linked_plan_ids": plan_ids(session["linked_plans"]),
        "linked_plans": [_plan_document(plan) for plan in session["linked_plans"]],
        "tags": list(session["tags"]),
        "forked_from": session["forked_from"],
        "metadata": _metadata_document(json_object(session["metadata"], "metadata"), messages),
        "messages": messages,
    }
    return body | {"checksum": checksum(body)}


def _metadata_document(metadata: dict[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
    """``metadata``, marked as of now where a reader could take a user's keys for ours of the version before."""
    if RESERVED not in metadata and (
        moved_of_session(metadata) != metadata
        or any(
            moved_of_message(message["role"], message["content"], message["metadata"]) != message["metadata"]
            for message in messages
            if message["metadata"]
        )
    ):
        return metadata | {RESERVED: {}}
    return metadata


def _usage_document(usage: TokenUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "estimated_cost": money_text(usage.nano_dollars),
        "cost_complete": usage.cost_complete,
    }


def _entry_document(entry: UsageEntry) -> dict[str, Any]:
    return {
        "llm": entry.llm,
        "input_tokens": entry.input_tokens,
        "output_tokens": entry.output_tokens,
        "estimated_cost": None if entry.nano_dollars is None else money_text(entry.nano_dollars),
        "created_at": time_text(entry.created_at),
    }


def _plan_document(plan: LinkedPlan) -> dict[str, Any]:
    return {"plan_id": plan.plan_id, "phase": plan.phase, "state": plan.state}


def _message_document(message: SessionMessage) -> dict[str, Any]:
    document = message.as_dict()
    return document | {
        "tool_calls": json_value(document["tool_calls"], "tool_calls"),
        "parts": json_value(document["parts"], "parts"),
        "metadata": json_object(document["metadata"], f"messages[{message.sequence}].metadata"),
    }


# --- reading --------------------------------------------------------------------------------------------------------


def read_document(source: Mapping[str, Any] | str | bytes) -> dict[str, Any]:
    """The export document in ``source``, JSON text or already read, with its version and checksum verified.

    Raises SessionImportError for what is no document of a supported version or is larger than IMPORT_LIMIT, and
    SessionChecksumError for one that was changed.
    """
    try:
        if isinstance(source, str | bytes):
            _check_size(len(source))
            source = load_json(source)
        if not isinstance(source, Mapping):
            raise SessionImportError(f"an export document is a JSON object, not {type(source).__name__}")
        document = json_object(source, "document")
    except InvalidInputError as error:
        raise SessionImportError(f"the document cannot be imported: {error}") from error
    _check_version(document.get("schema_version"))
    stated = document.get("checksum")
    if not isinstance(stated, str):
        raise SessionImportError("checksum is missing from the document, so it cannot be trusted")
    body = canonical_json({key: value for key, value in document.items() if key != "checksum"})
    _check_size(len(body))
    if stated != digest(body):
        raise SessionChecksumError(
            "the checksum does not match the document: it was changed or damaged after it was exported"
        )
    return document


def _check_size(size: int) -> None:
    if size > IMPORT_LIMIT:
        raise SessionImportError(
            f"the document is larger than {IMPORT_LIMIT // 1024 // 1024} MiB, the most that is imported"
        )


def _check_version(version: Any) -> None:
    match = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if match is None:
        shown = "missing" if version is None else f"not one: {version!r:.40}"
        raise SessionImportError(
            f"schema_version of the document is {shown}; it must be text such as {SCHEMA_VERSION!r}"
        )
    if version != SCHEMA_VERSION:
        known = tuple(map(int, SCHEMA_VERSION.split(".")))
        older = (int(match[1]), int(match[2])) < known
        reason = "is older than any that can be read" if older else "was made by a newer version of cleveragents"
        raise SessionImportError(f"schema_version {version} {reason}; this version reads {SCHEMA_VERSION}")


def fields_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the session that a document of ``read_document`` describes, each checked by itself.

    What the version before wrote among the user's keys has its place of now. Raises SessionImportError naming the
    field.
    """
    found = _object(document, "", KEYS)
    metadata = _mapping(found["metadata"], "metadata")
    messages = _list(found["messages"], "messages", _message)
    if RESERVED not in metadata:
        metadata = moved_of_session(metadata)
        messages = [_moved_message(message) if message.metadata else message for message in messages]
    elif metadata[RESERVED] == {}:
        # The mark of _metadata_document.
        metadata = {key: value for key, value in metadata.items() if key != RESERVED}
    with _at(""):
        created_at, updated_at = (parse_time(found[name], name) for name in ("created_at", "updated_at"))
    usage = _usage(found["token_usage"])
    entries = _list(found["usage_entries"], "usage_entries", _entry)
    _check_ledger(usage, entries)
    plans = _list(found["linked_plans"], "linked_plans", _plan)
    ids = _list(found["linked_plan_ids"], "linked_plan_ids", lambda plan_id, _: parse_ulid(plan_id))
    if ids != plan_ids(plans):
        raise SessionImportError("linked_plan_ids of the document are not those of its linked_plans")
    same = ("session_id", "namespace", "actor_name", "title", "automation_level", "tags", "forked_from")
    return {name: found[name] for name in same} | {
        "messages": messages,
        "token_usage": usage,
        "usage_entries": entries,
        "linked_plans": plans,
        "metadata": metadata,
        "created_at": created_at,
        "updated_at": updated_at,
    }


def _moved_message(message: SessionMessage) -> SessionMessage:
    moved = moved_of_message(message.role, message.content, message.metadata)
    return message if moved == message.metadata else replace(message, metadata=moved)


def _check_ledger(total: TokenUsage, entries: Sequence[UsageEntry]) -> None:
    """The totals may hold more than the ledger, but never less."""
    enough = (
        total.input_tokens >= sum(entry.input_tokens for entry in entries)
        and total.output_tokens >= sum(entry.output_tokens for entry in entries)
        and total.nano_dollars >= sum(entry.nano_dollars or 0 for entry in entries)
    )
    if not enough:
        raise SessionImportError("token_usage of the document is less than the sum of its usage_entries")
    if total.cost_complete and any(entry.nano_dollars is None for entry in entries):
        raise SessionImportError(
            "token_usage.cost_complete of the document is true, but not every cost of usage_entries is known"
        )


def _message(value: Any, place: str) -> SessionMessage:
    found = _object(value, place, _names(SessionMessage))
    if isinstance(found["content"], list):
        raise SessionImportError(f"{place}.content of the document must be text or null")
    created_at = parse_time(found["created_at"], "created_at")
    metadata = _mapping(found["metadata"], f"{place}.metadata")
    return SessionMessage(**found | {"created_at": created_at, "metadata": metadata})


def _plan(value: Any, place: str) -> LinkedPlan:
    return LinkedPlan(**_object(value, place, _names(LinkedPlan)))


def _usage(value: Any) -> TokenUsage:
    found = _object(value, "token_usage", _names(TokenUsage))
    if not isinstance(found["cost_complete"], bool):
        raise SessionImportError("token_usage.cost_complete of the document must be true or false")
    with _at("token_usage"):
        return TokenUsage(**found | {"estimated_cost": dollars(parse_money(found["estimated_cost"], "estimated_cost"))})


def _entry(value: Any, place: str) -> UsageEntry:
    found = _object(value, place, _names(UsageEntry))
    cost = found["estimated_cost"]
    known = None if cost is None else dollars(parse_money(cost, "estimated_cost"))
    created_at = parse_time(found["created_at"], "created_at")
    return UsageEntry(**found | {"estimated_cost": known, "created_at": created_at})


def _list(value: Any, name: str, read: Callable[[Any, str], Item]) -> list[Item]:
    if not isinstance(value, list):
        raise SessionImportError(f"{name} of the document must be a list")
    items = []
    for index, item in enumerate(value):
        place = f"{name}[{index}]"
        with _at(place):
            items.append(read(item, place))
    return items


def _mapping(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SessionImportError(f"{place} of the document must be an object")
    return value


def _names(kind: type) -> list[str]:
    return [each.name for each in fields(kind) if each.init]


def _object(value: Any, place: str, names: Sequence[str]) -> dict[str, Any]:
    """``value`` as a mapping that has exactly the keys ``names``."""
    _mapping(value, place)
    prefix = f"{place}." if place else ""
    for name in names:
        if name not in value:
            raise SessionImportError(f"{prefix}{name} is missing from the document")
    for name in value:
        if name not in names:
            raise SessionImportError(f"{prefix}{name[:60]} of the document is not a field that is known here")
    return dict(value)


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Tell what the domain refuses in the block with its place in the document."""
    try:
        yield
    except InvalidInputError as error:
        where = f"{place}: " if place else ""
        raise SessionImportError(f"the document cannot be imported: {where}{error}") from error
