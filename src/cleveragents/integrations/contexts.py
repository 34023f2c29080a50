"""A named context made of a session, and a session of a context, so that making it back gives what there was.

Messages keep their order, roles, content and times. What only one side has a field for is in the other's metadata:

- of a message of a session, ``tool_calls``, ``tool_call_id``, ``agent`` and ``parts`` that its text does not tell;
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
from cleveragents.conversation.content import content_text
from cleveragents.conversation.message import MessageRole, SessionMessage
from cleveragents.sessions.document import read_document, session_of
from cleveragents.sessions.session import Session
from cleveragents.turns.session import GLOBAL_CONTEXT
from cleveragents.values.canonical import checksum
from cleveragents.values.ids import new_ulid
from cleveragents.values.times import parse_time

SESSION, STATE, METADATA, BLANK = "session", "context_state", "context_metadata", "blank_content"

_NOTHING = "[nothing]"


def session_of_context(document: Mapping[str, Any]) -> Session:
    """The session that the export document of a context becomes, titled by its name unless it was a session before.

    Raises SessionImportError when what it was before was changed to something that is no session.
    """
    metadata = dict(document["metadata"])
    before = metadata.pop(SESSION, None)
    if not isinstance(before, dict):
        created_at = parse_time(document["created_at"], "created_at")
        new = Session(new_ulid(), title=document["name"], created_at=created_at, updated_at=created_at)
        before = new.as_export_dict()
    kept = {STATE: document["state"], METADATA: metadata, GLOBAL_CONTEXT: document["global_context"]}
    own = before.get("metadata")
    messages = [_session_message(number, message) for number, message in enumerate(document["messages"])]
    body = {
        **{name: value for name, value in before.items() if name != "checksum"},
        "updated_at": max([str(before.get("updated_at")), *(message["created_at"] for message in messages)]),
        "metadata": (own if isinstance(own, dict) else {}) | {name: value for name, value in kept.items() if value},
        "messages": messages,
    }
    return session_of(read_document(body | {"checksum": checksum(body)}))


def context_of_session(session: Session, name: str) -> Snapshot:
    """All that a context called ``name`` holds that is made of ``session``."""
    about = session.as_export_dict()
    del about["messages"], about["checksum"]
    rest = dict(about["metadata"])
    kept = {key: rest.pop(key) for key in (STATE, METADATA, GLOBAL_CONTEXT) if isinstance(rest.get(key), dict)}
    state = ContextState(
        created_at=session.created_at,
        state=kept.get(STATE, {}),
        global_context=kept.get(GLOBAL_CONTEXT, {}),
        metadata=kept.get(METADATA, {}) | {SESSION: about | {"metadata": rest}},
    )
    return Snapshot(name, state, [_context_message(message) for message in session.messages])


def _session_message(number: int, message: Mapping[str, Any]) -> dict[str, Any]:
    """A message of a context's export document, as one of a session's."""
    role, content, metadata = message["role"], message["content"], dict(message["metadata"])
    calls = metadata.get("tool_calls")
    if role == MessageRole.ASSISTANT and isinstance(calls, list) and calls and all(isinstance(c, dict) for c in calls):
        del metadata["tool_calls"]
    else:
        calls = None
    agent, call_id = _text(metadata, "agent"), _text(metadata, "tool_call_id")
    parts = content if isinstance(content, list) and content else None
    if isinstance(content, str) and isinstance(metadata.get("parts"), list) and metadata["parts"]:
        parts = metadata.pop("parts")
    text: str | None = content_text(content)
    if not (text or "").strip():
        text = None if calls else _NOTHING
        if content is not None or text is not None:
            metadata[BLANK] = content
            parts = None
    return {
        "sequence": number,
        "role": role,
        "content": text,
        # A result that does not say of which call it is: no llm will be sent it.
        "tool_call_id": call_id or (f"message-{number}" if role == MessageRole.TOOL else None),
        "tool_calls": calls,
        "parts": parts,
        "agent": agent,
        "metadata": metadata,
        "created_at": message["timestamp"],
    }


def _text(metadata: dict[str, Any], name: str) -> str | None:
    """``name`` taken out of ``metadata`` if it is text that is not blank."""
    value = metadata.get(name)
    if not isinstance(value, str) or not value.strip():
        return None
    del metadata[name]
    return value


def _context_message(message: SessionMessage) -> ContextMessage:
    metadata, content = dict(message.metadata), message.content
    own = {"tool_calls": message.tool_calls, "tool_call_id": message.tool_call_id, "agent": message.agent}
    if message.role is MessageRole.TOOL and message.tool_call_id == f"message-{message.sequence}":
        del own["tool_call_id"]
    parts: Any = message.parts
    if not content_text(metadata.get(BLANK)).strip() and BLANK in metadata:
        content = metadata.pop(BLANK)
    elif parts is not None and content_text(parts) == content:
        content, parts = parts, None
    own["parts"] = parts
    metadata |= {name: value for name, value in own.items() if value is not None}
    return new_message(str(message.role), content, metadata, message.created_at)
