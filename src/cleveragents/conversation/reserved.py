"""Our own keys in the metadata of sessions, contexts and messages, and how they are kept apart from a user's.

Two stand beside the user's keys, where other programs look for them: INTERRUPTED and IMPORTED_FROM. All others stand
under one key, RESERVED; what a user calls by their names is the user's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cleveragents.conversation.content import NOTHING, content_text

INTERRUPTED = "interrupted"
"""Of a message: true where it is what came of an answer that was cut off."""

IMPORTED_FROM = "imported_from"
"""Of a session: what it was made of, an export document or a context, with the checksum of that."""

RESERVED = "cleveragents"
"""The key under which all of the following stand."""

# Of a session.
CONFIG = "config"
"""The path of the configuration file that the session was last run with."""

CONFIG_DIGEST = "config_digest"
"""The SHA-256 of that file as it was then; None when it could not be read any more."""

GLOBAL_CONTEXT = "global_context"
"""What agents keep in the global context for the next run."""

CONTEXT_STATE = "context_state"
"""The state of the context that the session was made of."""

CONTEXT_METADATA = "context_metadata"
"""The metadata of the context that the session was made of."""

# Of a message, in a session or a context.
CUT = "cut_off"
"""Why an llm's answer was cut off before it was whole, in one word, such as ``length``."""

# Of a session's message.
FAILED = "failed"
"""True where a tool's message tells of its failure."""

BLANK_CONTENT = "blank_content"
"""The content of the context's message that this was made of, where that is blank, which a session refuses."""

# Of a context that was made of a session, and of its messages: what only a session has a field for.
SESSION = "session"
"""The session as in its export document, without messages and checksum."""

TOOL_CALLS = "tool_calls"
"""The calls of tools that an assistant's message makes."""

TOOL_CALL_ID = "tool_call_id"
"""The call that a tool's message answers."""

AGENT = "agent"
"""The name of the agent that wrote the message."""

PARTS = "parts"
"""Structured content that the text of the message does not tell."""


def reserved(metadata: Mapping[str, Any], name: str) -> Any:
    """The value of our key ``name``, None where there is none."""
    return _ours(metadata).get(name)


def broken_off(metadata: Mapping[str, Any]) -> str:
    """Why a message is not the whole answer, as a person is told: ``interrupted``, ``cut off: length``, or ""."""
    if metadata.get(INTERRUPTED):
        return "interrupted"
    why = reserved(metadata, CUT)
    return f"cut off: {why}" if isinstance(why, str) else ""


def with_reserved(metadata: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """``metadata`` with our keys set to ``values``; the others stay."""
    return {**metadata, RESERVED: {**_ours(metadata), **values}} if values else dict(metadata)


def without_reserved(metadata: Mapping[str, Any], names: Iterable[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """``metadata`` without our keys ``names``, and the values of those that were there."""
    left = dict(_ours(metadata))
    taken = {name: left.pop(name) for name in names if name in left}
    rest = {**metadata, RESERVED: left} if taken else dict(metadata)
    return {key: value for key, value in rest.items() if key != RESERVED or left}, taken


def _ours(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    found = metadata.get(RESERVED)
    return found if isinstance(found, Mapping) else {}


# --- the places of the version before, which had our keys among the user's ------------------------------------------

_OF_SESSION = {CONFIG: str, GLOBAL_CONTEXT: dict, CONTEXT_STATE: dict, CONTEXT_METADATA: dict}


def moved_of_session(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a session of the version before, with our keys in their place of now."""
    return _moved(metadata, [name for name, kind in _OF_SESSION.items() if isinstance(metadata.get(name), kind)])


def moved_of_message(role: str, content: str | None, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a session's message of the version before, with our keys in their place of now."""
    names = [FAILED] if role == "tool" and metadata.get(FAILED) is True else []
    is_blank = BLANK_CONTENT in metadata and not content_text(metadata[BLANK_CONTENT]).strip()
    if is_blank and content in {None, NOTHING}:
        names.append(BLANK_CONTENT)
    return _moved(metadata, names)


def _moved(metadata: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    rest = {key: value for key, value in metadata.items() if key not in names}
    return with_reserved(rest, {name: metadata[name] for name in names})
