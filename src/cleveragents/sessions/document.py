"""The export document of a session: written from the fields of one, and read back into them.

It is read by version, checksum, then every field; the first fault names its place. What order and rules the fields
have among each other is the session's own to check, which is made of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache
from typing import Any, TypeVar

from cleveragents.conversation.message import SessionMessage
from cleveragents.conversation.reserved import RESERVED, moved_of_message, moved_of_session
from cleveragents.conversation.usage import TokenUsage, UsageEntry, dollars, money_text, parse_money
from cleveragents.errors import InvalidInputError, SessionChecksumError, SessionImportError
from cleveragents.sessions.linked_plan import LinkedPlan, plan_ids
from cleveragents.values.canonical import checksum
from cleveragents.values.ids import parse_ulid
from cleveragents.values.json import json_object, json_record, json_value
from cleveragents.values.times import parse_time, time_text

SCHEMA_VERSION = "1.1"
"""Version of the document that this release writes."""

_READ = ("1.0", SCHEMA_VERSION)
"""Versions that are read. In 1.0 entries of the ledger have no tokens but those of input and output."""

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

CHECKSUM = "checksum"

LISTS = ("usage_entries", "messages")
"""The keys of what grows with a conversation."""

_VERSION = re.compile(r"(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})")

Item = TypeVar("Item")


# --- writing --------------------------------------------------------------------------------------------------------


def document_of(session: Mapping[str, Any]) -> dict[str, Any]:
    """The export document of a session, given by its fields, with its checksum.

    Raises InvalidInputError for what no document can hold.
    """
    lists = {
        "usage_entries": [entry_document(entry) for entry in session["usage_entries"]],
        "messages": [message_document(message) for message in session["messages"]],
    }
    parts = head_of(session, session["messages"]) | lists
    body = {key: parts[key] for key in KEYS if key != CHECKSUM}
    return body | {"checksum": checksum(body)}


def head_of(session: Mapping[str, Any], messages: Iterable[SessionMessage]) -> dict[str, Any]:
    """All of a session's document but its LISTS and its checksum.

    ``messages`` are those of the session, of which only the ones with metadata count. Raises as ``document_of`` does.
    """
    level = session["automation_level"]
    return {
        "schema_version": SCHEMA_VERSION,
        "session_id": session["session_id"],
        "namespace": session["namespace"],
        "actor_name": session["actor_name"],
        "title": session["title"],
        "automation_level": None if level is None else str(level),
        "created_at": time_text(session["created_at"]),
        "updated_at": time_text(session["updated_at"]),
        "token_usage": _usage_document(session["token_usage"]),
        "linked_plan_ids": plan_ids(session["linked_plans"]),
        "linked_plans": [_plan_document(plan) for plan in session["linked_plans"]],
        "tags": list(session["tags"]),
        "forked_from": session["forked_from"],
        "metadata": _metadata_document(json_object(session["metadata"], "metadata"), messages),
    }


def _metadata_document(metadata: dict[str, Any], messages: Iterable[SessionMessage]) -> dict[str, Any]:
    """``metadata``, marked as of now where a reader could take a user's keys for ours of the version before."""
    if RESERVED not in metadata and (
        moved_of_session(metadata) != metadata or any(moved_message(message) is not message for message in messages)
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


def entry_document(entry: UsageEntry) -> dict[str, Any]:
    """One of the document's ``usage_entries``."""
    return {
        "llm": entry.llm,
        "input_tokens": entry.input_tokens,
        "output_tokens": entry.output_tokens,
        "estimated_cost": None if entry.nano_dollars is None else money_text(entry.nano_dollars),
        "created_at": time_text(entry.created_at),
        "cached_tokens": entry.cached_tokens,
        "reasoning_tokens": entry.reasoning_tokens,
    }


def _plan_document(plan: LinkedPlan) -> dict[str, Any]:
    return {"plan_id": plan.plan_id, "phase": plan.phase, "state": plan.state}


def message_document(message: SessionMessage) -> dict[str, Any]:
    """One of the document's ``messages``. Raises InvalidInputError for what no document can hold."""
    document = message.as_dict()
    return document | {
        "tool_calls": json_value(document["tool_calls"], "tool_calls"),
        "parts": json_value(document["parts"], "parts"),
        "metadata": json_object(document["metadata"], f"messages[{message.sequence}].metadata"),
    }


# --- reading --------------------------------------------------------------------------------------------------------


def read_document(source: Mapping[str, Any]) -> dict[str, Any]:
    """The export document ``source``, with its version and checksum verified.

    Raises SessionImportError for what is no document of a supported version, and SessionChecksumError for one that
    was changed.
    """
    if not isinstance(source, Mapping):
        raise SessionImportError(f"an export document is a JSON object, not {type(source).__name__}")
    with at(""):
        # Nesting is counted as when it was stored: within each part of a message.
        lists = {
            key: [plain_item(item, f"{key}[{index}]") for index, item in enumerate(source[key])]
            for key in LISTS
            if isinstance(source.get(key), list)
        }
        document = json_record({**source, **dict.fromkeys(lists)}) | lists
    check_version(document.get("schema_version"))
    check_checksum(document.get(CHECKSUM), lambda: checksum({k: v for k, v in document.items() if k != CHECKSUM}))
    return document


def plain_item(value: Any, place: str) -> Any:
    """An item of one of the LISTS as JSON data. Raises InvalidValueError."""
    return json_record(value, place) if isinstance(value, Mapping) else json_value(value, place)


def check_checksum(stated: Any, found: Callable[[], str]) -> None:
    """Raise SessionImportError unless the checksum ``stated`` in a document is the one that is ``found`` of it."""
    if not isinstance(stated, str):
        raise SessionImportError("checksum is missing from the document, so it cannot be trusted")
    if stated != found():
        raise SessionChecksumError(
            "the checksum does not match the document: it was changed or damaged after it was exported"
        )


def check_version(version: Any) -> None:
    """Raise SessionImportError unless documents of ``version`` are read here."""
    match = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if match is None:
        shown = "missing" if version is None else f"not one: {version!r:.40}"
        raise SessionImportError(
            f"schema_version of the document is {shown}; it must be text such as {SCHEMA_VERSION!r}"
        )
    if version not in _READ:
        known = tuple(map(int, _READ[0].split(".")))
        older = (int(match[1]), int(match[2])) < known
        reason = "is older than any that can be read" if older else "was made by a newer version of cleveragents"
        raise SessionImportError(f"schema_version {version} {reason}; this version reads {' and '.join(_READ)}")


def fields_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the session that a document of ``read_document`` describes, each checked by itself.

    What the version before wrote among the user's keys has its place of now. Raises SessionImportError naming the
    field.
    """
    check_keys(document)
    messages = _list(document["messages"], "messages", message_of)
    found = head_fields(document)
    ledger = Ledger()
    entries = _list(document["usage_entries"], "usage_entries", entry_of)
    for entry in entries:
        ledger.add(entry)
    ledger.check(found["token_usage"])
    if is_of_version_before(document):
        messages = [moved_message(message) for message in messages]
    return found | {"messages": messages, "usage_entries": entries}


def check_keys(found: Collection[str]) -> None:
    """Raise SessionImportError unless a document has exactly the KEYS."""
    _check_names(found, "", KEYS)


def check_known(found: Collection[str]) -> None:
    """Raise SessionImportError when one of the keys of a document is none of KEYS."""
    _check_known(found, "", KEYS)


def head_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the session but those of its LISTS, each checked by itself. Raises as ``fields_of`` does."""
    metadata = _mapping(document["metadata"], "metadata")
    if RESERVED not in metadata:
        metadata = moved_of_session(metadata)
    elif metadata[RESERVED] == {}:
        # The mark of _metadata_document.
        metadata = {key: value for key, value in metadata.items() if key != RESERVED}
    with at(""):
        created_at, updated_at = (parse_time(document[name], name) for name in ("created_at", "updated_at"))
    plans = _list(document["linked_plans"], "linked_plans", _plan)
    ids = _list(document["linked_plan_ids"], "linked_plan_ids", lambda plan_id, _: parse_ulid(plan_id))
    if ids != plan_ids(plans):
        raise SessionImportError("linked_plan_ids of the document are not those of its linked_plans")
    same = ("session_id", "namespace", "actor_name", "title", "automation_level", "tags", "forked_from")
    return {name: document[name] for name in same} | {
        "token_usage": _usage(document["token_usage"]),
        "linked_plans": plans,
        "metadata": metadata,
        "created_at": created_at,
        "updated_at": updated_at,
    }


def is_of_version_before(document: Mapping[str, Any]) -> bool:
    """Whether our keys may stand among the user's in its messages; see ``moved_message``."""
    return RESERVED not in document["metadata"]


def moved_message(message: SessionMessage) -> SessionMessage:
    """A message of a document of the version before, with our keys in their place of now."""
    moved = moved_of_message(message.role, message.content, message.metadata)
    return message if moved == message.metadata else replace(message, metadata=moved)


class Ledger:
    """The sums of ``usage_entries`` while they come by."""

    def __init__(self) -> None:
        self._sums: tuple[int, ...] = (0, 0, 0)
        self._cost_complete = True

    def add(self, entry: UsageEntry) -> None:
        """Count ``entry``."""
        added = (entry.input_tokens, entry.output_tokens, entry.nano_dollars or 0)
        self._sums = tuple(map(sum, zip(self._sums, added, strict=True)))
        self._cost_complete = self._cost_complete and entry.nano_dollars is not None

    def check(self, total: TokenUsage) -> None:
        """Raise SessionImportError unless ``total`` agrees: it may hold more than the ledger, but never less."""
        totals = (total.input_tokens, total.output_tokens, total.nano_dollars)
        if any(whole < part for whole, part in zip(totals, self._sums, strict=True)):
            raise SessionImportError("token_usage of the document is less than the sum of its usage_entries")
        if total.cost_complete and not self._cost_complete:
            raise SessionImportError(
                "token_usage.cost_complete of the document is true, but not every cost of usage_entries is known"
            )


def message_of(value: Any, place: str) -> SessionMessage:
    """The message at ``place`` of a document, checked by itself. Raises SessionImportError or InvalidInputError."""
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
    with at("token_usage"):
        return TokenUsage(**found | {"estimated_cost": dollars(parse_money(found["estimated_cost"], "estimated_cost"))})


def entry_of(value: Any, place: str) -> UsageEntry:
    """The entry of the ledger at ``place`` of a document. Raises as ``message_of`` does."""
    before = {"cached_tokens": 0, "reasoning_tokens": 0}
    found = _object(before | _mapping(value, place), place, _names(UsageEntry))
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
        with at(place):
            items.append(read(item, place))
    return items


def _mapping(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise SessionImportError(f"{place} of the document must be an object")
    return value


@cache
def _names(kind: type) -> list[str]:
    return [each.name for each in fields(kind) if each.init]


def _object(value: Any, place: str, names: Sequence[str]) -> dict[str, Any]:
    """``value`` as a mapping that has exactly the keys ``names``."""
    _check_names(_mapping(value, place), place, names)
    return dict(value)


def _check_names(given: Collection[str], place: str, names: Sequence[str]) -> None:
    prefix = f"{place}." if place else ""
    for name in names:
        if name not in given:
            raise SessionImportError(f"{prefix}{name} is missing from the document")
    _check_known(given, place, names)


def _check_known(given: Collection[str], place: str, names: Sequence[str]) -> None:
    prefix = f"{place}." if place else ""
    for name in given:
        if name not in names:
            raise SessionImportError(f"{prefix}{name[:60]} of the document is not a field that is known here")


@contextmanager
def at(place: str) -> Iterator[None]:
    """Tell what the domain refuses in the block with its place in the document."""
    try:
        yield
    except InvalidInputError as error:
        where = f"{place}: " if place else ""
        raise SessionImportError(f"the document cannot be imported: {where}{error}") from error
