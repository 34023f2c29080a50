"""CleverAgents: describe agents in a YAML file, run them, and never lose a conversation.

The public names, each imported when it is first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cleveragents.agents.base import Agent, Message, Reply, Usage
    from cleveragents.agents.llm import LLMAgent
    from cleveragents.agents.tool import ToolAgent
    from cleveragents.app import CleverAgentsApp
    from cleveragents.bootstrap import open_sessions
    from cleveragents.config import AppConfig, RouteConfig, load_config
    from cleveragents.contexts import ContextManager, ContextMessage, list_contexts
    from cleveragents.domain.session import (
        AutomationLevel,
        LinkedPlan,
        MessageDraft,
        MessageRole,
        Session,
        SessionMessage,
        SessionSummary,
    )
    from cleveragents.domain.usage import TokenUsage
    from cleveragents.errors import CleverAgentsError
    from cleveragents.sessions.service import SessionService
    from cleveragents.streams.router import RunResult, StreamRouter

_MODULES = {
    "Agent": "agents.base",
    "AppConfig": "config",
    "AutomationLevel": "domain.session",
    "CleverAgentsApp": "app",
    "CleverAgentsError": "errors",
    "ContextManager": "contexts",
    "ContextMessage": "contexts",
    "LLMAgent": "agents.llm",
    "LinkedPlan": "domain.session",
    "Message": "agents.base",
    "MessageDraft": "domain.session",
    "MessageRole": "domain.session",
    "Reply": "agents.base",
    "RouteConfig": "config",
    "RunResult": "streams.router",
    "Session": "domain.session",
    "SessionMessage": "domain.session",
    "SessionService": "sessions.service",
    "SessionSummary": "domain.session",
    "StreamRouter": "streams.router",
    "TokenUsage": "domain.usage",
    "ToolAgent": "agents.tool",
    "Usage": "agents.base",
    "list_contexts": "contexts",
    "load_config": "config",
    "open_sessions": "bootstrap",
}

__all__ = [
    "Agent",
    "AppConfig",
    "AutomationLevel",
    "CleverAgentsApp",
    "CleverAgentsError",
    "ContextManager",
    "ContextMessage",
    "LLMAgent",
    "LinkedPlan",
    "Message",
    "MessageDraft",
    "MessageRole",
    "Reply",
    "RouteConfig",
    "RunResult",
    "Session",
    "SessionMessage",
    "SessionService",
    "SessionSummary",
    "StreamRouter",
    "TokenUsage",
    "ToolAgent",
    "Usage",
    "__version__",
    "list_contexts",
    "load_config",
    "open_sessions",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
