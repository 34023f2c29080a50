"""What may be in a configuration: one model for each section of the YAML."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticCustomError

from cleveragents.config.checks import agents_to_run, whole_faults
from cleveragents.config.fields import (
    COMPLAINT,
    LLM_PATTERN,
    NAME_PATTERN,
    BaseURL,
    Code,
    Expression,
    LLMName,
    Names,
    Parameter,
    Section,
    Sources,
    Template,
    Text,
    VariableName,
    as_tuple,
)
from cleveragents.config.llm_settings import LLMSettings
from cleveragents.config.operators import Step, in_order
from cleveragents.config.rules import TEMPERATURE, Seconds
from cleveragents.config.vocabulary import FAIL, INPUT, OUTPUT
from cleveragents.conversation.prompt import HISTORY_ASSISTANT_CHARACTERS, HISTORY_MESSAGES
from cleveragents.errors import InvalidValueError
from cleveragents.values.json import json_object
from cleveragents.values.names import actor_name

WHOLE = "whole"
"""Type of an error that ``checks.whole_faults`` reports too, with its exact place."""

_TOLD_IN_PYTHON = 20
"""Faults of a whole configuration that its model tells; ``load_config`` tells more, each with its line."""

HOP_LIMIT = 25
"""Routes of a loop that a message may enter, unless it is said otherwise."""

ACTOR_SCHEMA = {"type": "string", "pattern": "^[a-z0-9][a-z0-9._-]{0,63}/[a-z0-9][a-z0-9._-]{0,63}$"}


AGENT_ON_ERROR = (
    "What becomes of a message on which the agent fails: fail, skip, or the name of the agent that is asked instead; "
    "without it, what its route says."
)


class _FirstKeys:
    """What an llm agent is shown with before its settings: fields come in the order of bases, the last one first."""

    type: str
    base_url: str | None
    llm: str
    system_prompt: str


class LLMAgentConfig(Section, LLMSettings, _FirstKeys):
    """An agent that asks an llm."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["base_url"]}, {"properties": {"llm": {"pattern": LLM_PATTERN}}}]}
    )

    type: Literal["llm"] = Field(default="llm", description="llm: an agent that asks an llm.")
    # Before the llm: a server at an address of its own has names of its own.
    base_url: BaseURL | None = Field(
        default=None,
        description="Address of an OpenAI-compatible server. ${NAME} stands for an environment variable.",
    )
    llm: LLMName = Field(
        description="provider:model (such as openai:gpt-5-mini), local for the built-in small llm, or "
        "gguf:/path/to/file.gguf; with base_url any name that the server there knows."
    )
    system_prompt: Template = Field(
        default="", description="What the llm is told first; {{ context.key }} shows a value of the global context."
    )
    api_key_env: VariableName | None = Field(
        default=None, description="Name of the environment variable that holds the key; never the key itself."
    )
    tools: Names = Field(default=(), description="Names of the tool agents that the llm may call.")
    on_error: str | None = Field(default=None, description=AGENT_ON_ERROR)


class ToolAgentConfig(Section):
    """An agent that runs Python code in a sandbox."""

    type: Literal["tool"] = Field(default="tool", description="tool: an agent that runs Python code.")
    description: Text = Field(default="", description="What the tool does; an llm decides by it when to call the tool.")
    code: Code = Field(description="Python that sees message, context and input, sets result, and may change context.")
    parameters: dict[str, Parameter] = Field(
        default={"message": {"type": "string"}},
        description="The arguments an llm calls the tool with, by name, each as a JSON Schema.",
        json_schema_extra={"propertyNames": {"pattern": NAME_PATTERN}},
    )
    time_limit: Seconds = Field(default=5.0, description="Seconds after which the code is stopped.")
    memory_limit: int = Field(
        default=256_000_000, gt=0, le=1_000_000_000_000, description="Bytes of memory that the code may use."
    )
    on_error: str | None = Field(default=None, description=AGENT_ON_ERROR)


AgentConfig = Annotated[LLMAgentConfig | ToolAgentConfig, Field(discriminator="type")]


class RouteConfig(Section):
    """A stream of messages from a source, through agents and operators, to a target."""

    name: SkipJsonSchema[str] = Field(default="route", exclude=True)
    # An alias proper would make type checkers demand ``from`` as a keyword, which Python does not allow.
    source: Sources = Field(
        validation_alias=AliasChoices("from", "source"),
        serialization_alias="from",
        description="input, another route, or a list of them (a merge).",
    )
    through: Annotated[tuple[Step, ...], BeforeValidator(as_tuple), AfterValidator(in_order)] = Field(
        default=(), description="Agents by name, and operators, in the order in which a message passes them."
    )
    to: Names = Field(
        default=(),
        description="output, another route, or a list of them; not needed when another route's from names this one.",
    )
    until: Expression | None = Field(
        default=None,
        description="A Python expression, for a route that leads back: while it is false, messages go round in the "
        "loop only; when it is true, they leave it.",
    )
    on_error: str = Field(
        default=FAIL,
        description="What becomes of a message on which a step fails: fail (it is reported), skip (it is left out), or "
        "the name of an agent that is asked in the step's place.",
    )


def _named(routes: dict[str, RouteConfig]) -> dict[str, RouteConfig]:
    """Each route with the name under which it stands."""
    return {name: route.model_copy(update={"name": name}) for name, route in routes.items()}


class WindowConfig(Section):
    """How much of a session an llm is given: whole turns, the newest, up to one limit."""

    turns: int | None = Field(default=None, ge=0, description="At most so many turns; 0 for no history.")
    messages: int | None = Field(
        default=None, ge=0, description="At most so many messages, counting calls of tools and their results."
    )
    tokens: int | None = Field(default=None, ge=0, description="At most about so many tokens.")

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        if len(self.model_fields_set) > 1:
            reason = "has more than one limit; expected turns, messages or tokens"
            raise PydanticCustomError(COMPLAINT, "{reason}", {"reason": reason})
        return self


class HistoryConfig(Section):
    """How much of a conversation is put before a new prompt."""

    messages: int = Field(
        default=HISTORY_MESSAGES, ge=0, description="How many of a context's last messages; 0 for none."
    )
    assistant_characters: int = Field(
        default=HISTORY_ASSISTANT_CHARACTERS, gt=0, description="Where an assistant's message is cut, in characters."
    )
    form: Literal["text", "messages"] = Field(
        default="text",
        validation_alias="as",
        serialization_alias="as",
        description="How a context's messages are sent: text before the prompt, or messages with roles of their own.",
    )
    window: WindowConfig | None = Field(
        default=None,
        description="How much of a session goes to the first llm agent; without it, what that llm can hold.",
        json_schema_extra={"maxProperties": 1},
    )


class LimitsConfig(Section):
    """What all steps of a run may put out together. A run that reaches a limit ends, and keeps what came before."""

    messages: int = Field(
        default=100_000,
        gt=0,
        description="Messages: one for each output of a step, each copy that a split makes, and each error.",
    )
    bytes: int = Field(
        default=256_000_000, gt=0, description="Bytes of all that steps put out, and add to the global context."
    )


class AppConfig(Section):
    """A network of agents: what a configuration file says, checked as a whole."""

    name: Annotated[str, AfterValidator(actor_name), WithJsonSchema(ACTOR_SCHEMA)] = Field(
        default="local/agents", description="The actor, as namespace/name; without it, local/ and the file's name."
    )
    agents: dict[str, AgentConfig] = Field(
        min_length=1,
        description="The agents, by name.",
        json_schema_extra={"propertyNames": {"pattern": NAME_PATTERN}},
    )
    routes: Annotated[dict[str, RouteConfig], AfterValidator(_named)] = Field(
        default={},
        description="The routes, by name. One agent alone needs none: input, the agent, output.",
        json_schema_extra={"propertyNames": {"pattern": NAME_PATTERN, "not": {"enum": [INPUT, OUTPUT]}}},
    )
    context: dict[str, Any] = Field(
        default={},
        description="What the global context holds at first: JSON values by name.",
        json_schema_extra={"properties": {"temperature": {"type": "number", **TEMPERATURE.schema}}},
    )
    hop_limit: int = Field(
        default=HOP_LIMIT, gt=0, description="How many routes one message may pass, where routes form a loop."
    )
    limits: LimitsConfig = Field(
        default=LimitsConfig(), description="How much all steps of a run may put out together."
    )
    history: HistoryConfig = Field(
        default=HistoryConfig(), description="How much of a conversation is put before a new prompt."
    )
    path: SkipJsonSchema[Path | None] = Field(default=None, exclude=True)

    @field_validator("context")
    @classmethod
    def _as_json(cls, context: dict[str, Any]) -> dict[str, Any]:
        try:
            return json_object(context, "context")
        except InvalidValueError as error:
            raise PydanticCustomError(WHOLE, "{reason}", {"reason": str(error)}) from None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        first = islice(whole_faults(self.model_dump(by_alias=True)), _TOLD_IN_PYTHON)
        faults = [f"{'.'.join(map(str, path))}: {text}" for path, text in first]
        if faults:
            raise PydanticCustomError(WHOLE, "{reason}", {"reason": "; ".join(faults)})
        return self

    @property
    def on_error(self) -> dict[str, str]:
        """What each agent says of messages on which it fails, for those that say it."""
        return {name: agent.on_error for name, agent in self.agents.items() if agent.on_error is not None}

    def network(self) -> tuple[RouteConfig, ...]:
        """The routes that messages take: those written, or input → agent → output for one agent without routes."""
        if self.routes:
            return tuple(self.routes.values())
        agents = agents_to_run(self.model_dump(include={"agents"})["agents"])
        return (RouteConfig(source=(INPUT,), through=tuple(agents), to=(OUTPUT,)),)
