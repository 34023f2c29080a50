"""CleverAgents: describe agents in a YAML file, run them, and never lose a conversation.

The public names, each imported when it is first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from cleveragents.agents.agent import Agent, Message, Reply
    from cleveragents.agents.events import (
        AgentAnswered,
        AgentEvent,
        ContextConflict,
        ErrorPassedOver,
        Listener,
        LLMUsed,
        PromptRead,
        TextDelta,
        ToolCalled,
        ToolPrinted,
        ToolReturned,
    )
    from cleveragents.agents.llm.agent import LLMAgent
    from cleveragents.agents.tool.agent import ToolAgent
    from cleveragents.app import CleverAgentsApp
    from cleveragents.config import AppConfig, RouteConfig, load_config
    from cleveragents.contexts import ContextManager, ContextMessage, list_contexts
    from cleveragents.conversation.message import MessageDraft, MessageRole, SessionMessage
    from cleveragents.conversation.usage import TokenUsage, Usage, UsageEntry
    from cleveragents.errors import (
        AgentError,
        BatchBusyError,
        BatchDamagedError,
        BatchError,
        BatchResultsError,
        CleverAgentsError,
        CodeError,
        ConfigError,
        ContextBusyError,
        ContextDamagedError,
        ContextError,
        ContextExistsError,
        ContextImportError,
        ContextNotFoundError,
        InvalidIdError,
        InvalidInputError,
        InvalidNameError,
        InvalidSettingError,
        InvalidValueError,
        LLMError,
        NoOutputError,
        SessionAmbiguousError,
        SessionBusyError,
        SessionChecksumError,
        SessionConflictError,
        SessionDamagedError,
        SessionExportError,
        SessionImportError,
        SessionNotFoundError,
        SessionSchemaError,
        SessionServiceError,
        SessionStorageError,
        SessionValidationError,
        StorageError,
        StreamError,
        ToolError,
    )
    from cleveragents.sessions.linked_plan import LinkedPlan
    from cleveragents.sessions.open import open_sessions
    from cleveragents.sessions.service import SessionService
    from cleveragents.sessions.session import AutomationLevel, Session, SessionSummary
    from cleveragents.streams.router import RunResult, StreamRouter

_MODULES = {
    "Agent": "agents.agent",
    "AgentAnswered": "agents.events",
    "AgentError": "errors",
    "AgentEvent": "agents.events",
    "AppConfig": "config",
    "AutomationLevel": "sessions.session",
    "BatchBusyError": "errors",
    "BatchDamagedError": "errors",
    "BatchError": "errors",
    "BatchResultsError": "errors",
    "CleverAgentsApp": "app",
    "CleverAgentsError": "errors",
    "CodeError": "errors",
    "ConfigError": "errors",
    "ContextBusyError": "errors",
    "ContextConflict": "agents.events",
    "PromptRead": "agents.events",
    "ContextDamagedError": "errors",
    "ContextError": "errors",
    "ContextExistsError": "errors",
    "ContextImportError": "errors",
    "ContextManager": "contexts",
    "ContextMessage": "contexts",
    "ContextNotFoundError": "errors",
    "ErrorPassedOver": "agents.events",
    "InvalidIdError": "errors",
    "InvalidInputError": "errors",
    "InvalidNameError": "errors",
    "InvalidSettingError": "errors",
    "InvalidValueError": "errors",
    "LLMAgent": "agents.llm.agent",
    "LLMError": "errors",
    "LLMUsed": "agents.events",
    "LinkedPlan": "sessions.linked_plan",
    "Listener": "agents.events",
    "Message": "agents.agent",
    "MessageDraft": "conversation.message",
    "MessageRole": "conversation.message",
    "NoOutputError": "errors",
    "Reply": "agents.agent",
    "RouteConfig": "config",
    "RunResult": "streams.router",
    "Session": "sessions.session",
    "SessionAmbiguousError": "errors",
    "SessionBusyError": "errors",
    "SessionChecksumError": "errors",
    "SessionConflictError": "errors",
    "SessionDamagedError": "errors",
    "SessionExportError": "errors",
    "SessionImportError": "errors",
    "SessionMessage": "conversation.message",
    "SessionNotFoundError": "errors",
    "SessionSchemaError": "errors",
    "SessionService": "sessions.service",
    "SessionServiceError": "errors",
    "SessionStorageError": "errors",
    "SessionSummary": "sessions.session",
    "SessionValidationError": "errors",
    "StorageError": "errors",
    "StreamError": "errors",
    "StreamRouter": "streams.router",
    "TextDelta": "agents.events",
    "TokenUsage": "conversation.usage",
    "ToolAgent": "agents.tool.agent",
    "ToolCalled": "agents.events",
    "ToolError": "errors",
    "ToolPrinted": "agents.events",
    "ToolReturned": "agents.events",
    "Usage": "conversation.usage",
    "UsageEntry": "conversation.usage",
    "list_contexts": "contexts",
    "load_config": "config",
    "open_sessions": "sessions.open",
}

__all__ = [
    "Agent",
    "AgentAnswered",
    "AgentError",
    "AgentEvent",
    "AppConfig",
    "AutomationLevel",
    "BatchBusyError",
    "BatchDamagedError",
    "BatchError",
    "BatchResultsError",
    "CleverAgentsApp",
    "CleverAgentsError",
    "CodeError",
    "ConfigError",
    "ContextBusyError",
    "ContextConflict",
    "ContextDamagedError",
    "ContextError",
    "ContextExistsError",
    "ContextImportError",
    "ContextManager",
    "ContextMessage",
    "ContextNotFoundError",
    "ErrorPassedOver",
    "InvalidIdError",
    "InvalidInputError",
    "InvalidNameError",
    "InvalidSettingError",
    "InvalidValueError",
    "LLMAgent",
    "LLMError",
    "LLMUsed",
    "LinkedPlan",
    "Listener",
    "Message",
    "MessageDraft",
    "MessageRole",
    "NoOutputError",
    "PromptRead",
    "Reply",
    "RouteConfig",
    "RunResult",
    "Session",
    "SessionAmbiguousError",
    "SessionBusyError",
    "SessionChecksumError",
    "SessionConflictError",
    "SessionDamagedError",
    "SessionExportError",
    "SessionImportError",
    "SessionMessage",
    "SessionNotFoundError",
    "SessionSchemaError",
    "SessionService",
    "SessionServiceError",
    "SessionStorageError",
    "SessionSummary",
    "SessionValidationError",
    "StorageError",
    "StreamError",
    "StreamRouter",
    "TextDelta",
    "TokenUsage",
    "ToolAgent",
    "ToolCalled",
    "ToolError",
    "ToolPrinted",
    "ToolReturned",
    "Usage",
    "UsageEntry",
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
