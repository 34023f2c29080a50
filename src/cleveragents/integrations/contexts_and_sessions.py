"""A named context made of a session, and a session of a context, so that making it back gives what there was.

Messages keep their order, roles, content and times. What only one side has a field for is in the other's metadata,
under our own key (``conversation.reserved``), so that a user's metadata stays as it is:

- of a message of a session, ``tool_calls``, ``tool_call_id``, ``agent`` and ``parts``, as far as the message of the
  context does not tell them by itself: a user may write them into its metadata, as other programs do;
- of a session, all but its messages, under ``session``, as in its export document;
- of a context, its state and metadata, under ``context_state`` and ``context_metadata``.

The global context is where runs on either side look for it. Content that is blank, which a session refuses, is
``[nothing]`` there, with the original under ``blank_content``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cleveragents.contexts.message import ContextMessage, new_message
from cleveragents.contexts.state_file import ContextState
from cleveragents.contexts.transfer import Snapshot
from cleveragents.conversation.content import NOTHING, content_text
from cleveragents.conversation.message import MessageRole, SessionMessage
from cleveragents.conversation.reserved import (
    AGENT,
    BLANK_CONTENT,
    CONTEXT_METADATA,
    CONTEXT_STATE,
    GLOBAL_CONTEXT,
    PARTS,
    RESERVED,
    SESSION,
    TOOL_CALL_ID,
    TOOL_CALLS,
    moved_of_message,
    moved_of_session,
    with_reserved,
    without_reserved,
)
from cleveragents.sessions.document import KEYS, read_document
from cleveragents.sessions.session import Session
from cleveragents.values.canonical import checksum
from cleveragents.values.ids import new_ulid
from cleveragents.values.json import dump_json
from cleveragents.values.times import parse_time

_OF_MESSAGE = (TOOL_CALLS, TOOL_CALL_ID, AGENT, PARTS)


def session_of_context(document: Mapping[str, Any]) -> Session:
    """The session that the export document of a context becomes, titled by its name unless it was a session before.

    Raises SessionImportError when what it was before was changed to something that is no session.
    """
    metadata, taken = without_reserved(document["metadata"], [SESSION])
    before = taken.get(SESSION)
    messages = document["messages"]
    if before is None and _is_session(metadata.get(SESSION)):
        # Made of a session by the version before, which had our keys among the user's.
        before = metadata.pop(SESSION)
        before = before | {"metadata": moved_of_session(before["metadata"])}
        messages = [_moved(message) for message in messages]
    if not isinstance(before, dict):
        created_at = parse_time(document["created_at"], "created_at")
        new = Session(new_ulid(), title=document["name"], created_at=created_at, updated_at=created_at)
        before = new.as_export_dict()
    own = before.get("metadata")
    kept = {CONTEXT_STATE: document["state"], CONTEXT_METADATA: metadata, GLOBAL_CONTEXT: document["global_context"]}
    # Our key is always there, so that nothing of the user's is taken for ours of the version before.
    marked: dict[str, Any] = {RESERVED: {}} | (own if isinstance(own, dict) else {})
    written = [_session_message(number, message) for number, message in enumerate(messages)]
    body = {
        **{name: value for name, value in before.items() if name != "checksum"},
        "updated_at": max([str(before.get("updated_at")), *(message["created_at"] for message in written)]),
        "metadata": with_reserved(marked, {name: value for name, value in kept.items() if value}),
        "messages": written,
    }
    return Session.from_document(read_document(body | {"checksum": checksum(body)}))


def context_of_session(session: Session, name: str) -> Snapshot:
    """All that a context called ``name`` holds that is made of ``session``."""
    about = session.as_export_dict()
    del about["messages"], about["checksum"]
    rest, taken = without_reserved(session.metadata, [CONTEXT_STATE, CONTEXT_METADATA, GLOBAL_CONTEXT])
    kept = {key: value for key, value in taken.items() if isinstance(value, dict) and value}
    about["metadata"] = with_reserved(rest, {key: value for key, value in taken.items() if key not in kept})
    state = ContextState(
        created_at=session.created_at,
        state=kept.get(CONTEXT_STATE, {}),
        global_context=kept.get(GLOBAL_CONTEXT, {}),
        metadata=with_reserved(kept.get(CONTEXT_METADATA, {}), {SESSION: about}),
    )
    return Snapshot(name, state, [_context_message(message) for message in session.messages])


def _session_message(number: int, message: Mapping[str, Any]) -> dict[str, Any]:
    """A message of a context's export document, as one of a session's."""
    role, content = message["role"], message["content"]
    metadata, own = without_reserved(message["metadata"], _OF_MESSAGE)
    fields = _told(number, role, content, metadata) | own
    text: str | None = content_text(content)
    if not (text or "").strip():
        text = None if fields[TOOL_CALLS] else NOTHING
        if content is not None or text is not None:
            metadata = with_reserved(metadata, {BLANK_CONTENT: content})
    return {
        "sequence": number,
        "role": role,
        "content": text,
        **fields,
        "metadata": metadata,
        "created_at": message["timestamp"],
    }


def _context_message(message: SessionMessage) -> ContextMessage:
    metadata, blank = without_reserved(message.metadata, [BLANK_CONTENT])
    content: Any = message.content
    if BLANK_CONTENT in blank:
        content = blank[BLANK_CONTENT]
    elif message.parts is not None and content_text(message.parts) == content:
        content = message.parts
    told = _told(message.sequence, str(message.role), content, metadata)
    fields = {name: getattr(message, name) for name in _OF_MESSAGE}
    own = {name: value for name, value in fields.items() if not _same(value, told[name])}
    return new_message(str(message.role), content, with_reserved(metadata, own), message.created_at)


def _told(number: int, role: str, content: Any, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a session's message that a context's message tells by its content and by a user's metadata."""
    calls, parts = metadata.get(TOOL_CALLS), metadata.get(PARTS)
    are_calls = isinstance(calls, list) and calls and all(isinstance(call, dict) for call in calls)
    if isinstance(content, list):
        parts = content
    if not content_text(content).strip():
        parts = None
    # A result that does not say of which call it is: no llm will be sent it.
    unknown_call = f"message-{number}" if role == MessageRole.TOOL else None
    return {
        TOOL_CALLS: calls if are_calls and role == MessageRole.ASSISTANT else None,
        TOOL_CALL_ID: _text(metadata, TOOL_CALL_ID) or unknown_call,
        AGENT: _text(metadata, AGENT),
        PARTS: parts if isinstance(parts, list) and parts else None,
    }


def _text(metadata: Mapping[str, Any], name: str) -> str | None:
    """What ``metadata`` has under ``name`` if it is text that is not blank."""
    value = metadata.get(name)
    return value if isinstance(value, str) and value.strip() else None


def _same(first: Any, second: Any) -> bool:
    """Equal as JSON, where 1, 1.0 and true differ."""
    return first == second and dump_json(first) == dump_json(second)


# --- what the version before wrote ----------------------------------------------------------------------------------


def _is_session(value: Any) -> bool:
    """Whether it is what the version before kept of a session, and no value of a user's of the same name."""
    return (
        isinstance(value, dict)
        and value.keys() == set(KEYS) - {"messages", "checksum"}
        and isinstance(value["metadata"], dict)
    )


def _moved(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message of a context that the version before made of a session, with our keys in their place of now."""
    role, content = message["role"], message["content"]
    metadata = moved_of_message(role, content, message["metadata"])
    told = _told(0, role, content, metadata)
    names = [name for name in _OF_MESSAGE if name in metadata and _same(told[name], metadata[name])]
    rest = {key: value for key, value in metadata.items() if key not in names}
    return {**message, "metadata": with_reserved(rest, {name: metadata[name] for name in names})}
