"""Reading export documents: version, checksum, then every field; the first fault names its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, TypeVar

from cleveragents.conversation.message import SessionMessage
from cleveragents.conversation.usage import TokenUsage, UsageEntry, dollars, parse_money
from cleveragents.errors import InvalidInputError, SessionChecksumError, SessionImportError
from cleveragents.sessions.session import SCHEMA_VERSION, LinkedPlan, Session
from cleveragents.values.canonical import canonical_json, digest
from cleveragents.values.ids import parse_ulid
from cleveragents.values.json import IMPORT_LIMIT, json_object, load_json
from cleveragents.values.times import parse_time

_VERSION = re.compile(r"(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})")


def _names(kind: type) -> list[str]:
    return [each.name for each in fields(kind) if each.init]


_FIELDS = ["schema_version", *_names(Session), "linked_plan_ids", "checksum"]

Item = TypeVar("Item")


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


def session_of(document: Mapping[str, Any]) -> Session:
    """The session that a document of ``read_document`` describes, every field checked.

    Raises SessionImportError naming the field.
    """
    found = _object(document, "", _FIELDS)
    with _at(""):
        session = Session(
            session_id=found["session_id"],
            namespace=found["namespace"],
            actor_name=found["actor_name"],
            title=found["title"],
            automation_level=found["automation_level"],
            messages=_list(found["messages"], "messages", _message),
            token_usage=_usage(found["token_usage"]),
            linked_plans=_list(found["linked_plans"], "linked_plans", _plan),
            tags=found["tags"],
            forked_from=found["forked_from"],
            metadata=_mapping(found["metadata"], "metadata"),
            created_at=parse_time(found["created_at"], "created_at"),
            updated_at=parse_time(found["updated_at"], "updated_at"),
            usage_entries=_list(found["usage_entries"], "usage_entries", _entry),
        )
        plan_ids = _list(found["linked_plan_ids"], "linked_plan_ids", lambda plan_id, _: parse_ulid(plan_id))
    if plan_ids != session.linked_plan_ids:
        raise SessionImportError("linked_plan_ids of the document are not those of its linked_plans")
    _check_ledger(session)
    return session


def _check_ledger(session: Session) -> None:
    """The totals may hold more than the ledger, but never less."""
    total, entries = session.token_usage, session.usage_entries
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


def _object(value: Any, place: str, names: list[str]) -> dict[str, Any]:
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
