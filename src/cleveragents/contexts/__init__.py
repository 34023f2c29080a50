"""Named contexts: a folder on disk with a conversation, a state, a global context and metadata.

``context`` is what a program uses; ``root`` is the folder of all contexts; ``context_folder`` is that of one, and
``messages_file``, ``state_file`` and ``damaged_file`` are the files in it. ``damage`` holds every sentence about what
cannot be read, ``repair`` sets it aside; ``transfer`` is the export document. Each is imported when it is first used: a
list of contexts needs no manager.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cleveragents.contexts.context import ContextManager
    from cleveragents.contexts.message import ContextMessage
    from cleveragents.contexts.root import ContextInfo, contexts_root, describe_contexts, list_contexts
    from cleveragents.contexts.search import search_contexts

_MODULES = {
    "ContextInfo": "root",
    "ContextManager": "context",
    "ContextMessage": "message",
    "contexts_root": "root",
    "describe_contexts": "root",
    "list_contexts": "root",
    "search_contexts": "search",
}

__all__ = [
    "ContextInfo",
    "ContextManager",
    "ContextMessage",
    "contexts_root",
    "describe_contexts",
    "list_contexts",
    "search_contexts",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{module}"), name)
