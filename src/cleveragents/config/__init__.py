"""The configuration of a network of agents: what may be in it, and how it is read from a YAML file."""

from cleveragents.config.load import load_config
from cleveragents.config.models import (
    AgentConfig,
    AppConfig,
    HistoryConfig,
    LLMAgentConfig,
    RouteConfig,
    ToolAgentConfig,
)
from cleveragents.config.operators import OPERATORS, FilterConfig, MapConfig, OperatorConfig, Step

__all__ = [
    "OPERATORS",
    "AgentConfig",
    "AppConfig",
    "FilterConfig",
    "HistoryConfig",
    "LLMAgentConfig",
    "MapConfig",
    "OperatorConfig",
    "RouteConfig",
    "Step",
    "ToolAgentConfig",
    "load_config",
]
