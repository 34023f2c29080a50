"""The configuration of a network of agents: what may be in it, and how it is read from a YAML file.

Each name is imported when it is first used: an agent made in Python needs the settings of an llm, and no pydantic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cleveragents.config.load import load_config
    from cleveragents.config.models import (
        AgentConfig,
        AppConfig,
        HistoryConfig,
        LimitsConfig,
        LLMAgentConfig,
        RouteConfig,
        ToolAgentConfig,
    )
    from cleveragents.config.operators import OPERATORS, FilterConfig, MapConfig, OperatorConfig, Step

_MODULES = {
    "OPERATORS": "operators",
    "AgentConfig": "models",
    "AppConfig": "models",
    "FilterConfig": "operators",
    "HistoryConfig": "models",
    "LLMAgentConfig": "models",
    "LimitsConfig": "models",
    "MapConfig": "operators",
    "OperatorConfig": "operators",
    "RouteConfig": "models",
    "Step": "operators",
    "ToolAgentConfig": "models",
    "load_config": "load",
}

__all__ = [
    "OPERATORS",
    "AgentConfig",
    "AppConfig",
    "FilterConfig",
    "HistoryConfig",
    "LLMAgentConfig",
    "LimitsConfig",
    "MapConfig",
    "OperatorConfig",
    "RouteConfig",
    "Step",
    "ToolAgentConfig",
    "load_config",
]


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{module}"), name)
