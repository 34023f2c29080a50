"""The agents of a configuration, built: one function for each type of agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cleveragents.agents.agent import Agent
from cleveragents.agents.llm.agent import LLMAgent
from cleveragents.agents.tool.agent import ToolAgent
from cleveragents.config.llm_settings import setting_values

if TYPE_CHECKING:
    from cleveragents.config import AppConfig, LLMAgentConfig, ToolAgentConfig


def build_agents(config: AppConfig, *, unsafe: bool = False, llm: str | None = None) -> dict[str, Agent]:
    """Every agent of ``config`` by name. ``llm`` replaces the llm of each; ``unsafe`` runs tools unsandboxed."""
    from cleveragents.config import LLMAgentConfig, ToolAgentConfig

    agents: dict[str, Agent] = {
        name: _tool(name, settings, unsafe)
        for name, settings in config.agents.items()
        if isinstance(settings, ToolAgentConfig)
    }
    # Tools first: an llm agent is given those it may call.
    agents |= {
        name: _llm(name, settings, agents, llm)
        for name, settings in config.agents.items()
        if isinstance(settings, LLMAgentConfig)
    }
    return agents


def _tool(name: str, settings: ToolAgentConfig, unsafe: bool) -> ToolAgent:
    return ToolAgent(
        name,
        settings.code,
        description=settings.description,
        parameters=settings.parameters if "parameters" in settings.model_fields_set else None,
        unsafe=unsafe,
        time_limit=settings.time_limit,
        memory_limit=settings.memory_limit,
    )


def _llm(name: str, settings: LLMAgentConfig, tools: Mapping[str, Agent], llm: str | None) -> LLMAgent:
    chosen = settings.llm if llm is None else llm
    # An address and a key belong to the provider that the file names, not to another one.
    same_provider = chosen.partition(":")[0] == settings.llm.partition(":")[0]
    return LLMAgent(
        name,
        chosen,
        system_prompt=settings.system_prompt,
        tools=[tools[tool] for tool in settings.tools],
        base_url=settings.base_url if same_provider else None,
        api_key_env=settings.api_key_env if same_provider else None,
        **setting_values(settings),
    )
