"""The settings that an llm is asked with: one field each, and nothing more to write for another one.

A file's llm agents (``LLMAgentConfig``) and those made in Python (``LLMAgent``) have these fields because they inherit
them. The second do not load pydantic before they are asked, so this module does not load it either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from cleveragents.config.rules import Count, Seconds, Temperature

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema


@dataclass(frozen=True, slots=True)
class Setting:
    """How a setting is sent, as a key of pydantic-ai's ``ModelSettings``, and what a file's author reads of it.

    None is sent of a setting that is for us.
    """

    sent_as: str | None
    description: str

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(schema), "description": self.description}


@dataclass(kw_only=True, eq=False, repr=False)
class LLMSettings:
    """What an llm is asked with. None stands for not given: it is not sent, and what holds is the provider's own."""

    temperature: Annotated[
        Temperature | None,
        Setting("temperature", "From 0 (always much the same) to 2; without it, the provider's own."),
    ] = None
    max_tokens: Annotated[Count | None, Setting("max_tokens", "The longest answer, in tokens.")] = None
    timeout: Annotated[Seconds | None, Setting("request_timeout", "Seconds to wait for an answer.")] = None
    max_wait: Annotated[
        Seconds | None,
        Setting(None, "Seconds up to which a server's wish to be asked later is followed; 60 without it."),
    ] = None


def setting_values(source: LLMSettings) -> dict[str, Any]:
    """The settings of ``source`` by name, those that were not given as None."""
    return {field.name: getattr(source, field.name) for field in fields(LLMSettings)}


def as_sent(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name in the form of pydantic-ai's ``ModelSettings``: those that were given."""
    return {key: values[name] for name, key in _keys().items() if key is not None and values[name] is not None}


@cache
def _keys() -> dict[str, str | None]:
    hints = get_type_hints(LLMSettings, include_extras=True)
    return {name: hint.__metadata__[-1].sent_as for name, hint in hints.items()}
