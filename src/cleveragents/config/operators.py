"""The operators of a route, as they are written: one model for each, with one field of the operator's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from cleveragents.config.fields import COMPLAINT, Expression, Section, as_tuple, distinct
from cleveragents.config.rules import Seconds
from cleveragents.values.json import json_value

Count = Annotated[int, Field(gt=0)]


def _complaint(reason: str) -> PydanticCustomError:
    return PydanticCustomError(COMPLAINT, "{reason}", {"reason": reason})


class OperatorConfig(Section):
    """Base of the operators; ``isinstance`` tells an operator in a route from the name of an agent."""

    modifiable: ClassVar[bool] = False
    """Whether it works on one message at a time, so that a modifier may follow it."""

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that the operator asks."""
        return ()


class ModifierConfig(OperatorConfig):
    """Base of the operators that change how the step before them works on each message."""


class FilterConfig(OperatorConfig):
    """Lets a message through when an expression is true of it."""

    modifiable = True

    filter: Expression = Field(
        description="A Python expression; a message goes on when it is true. It sees message, context and metadata."
    )


class MapConfig(OperatorConfig):
    """Replaces a message's content by the value of an expression."""

    modifiable = True

    map: Expression = Field(
        description="A Python expression; its value is what goes on. It sees message, context and metadata."
    )


class BufferSettings(Section):
    """How many messages to gather, and for how long."""

    count: Count | None = Field(default=None, description="How many messages make a list.")
    seconds: Seconds | None = Field(default=None, description="After how many seconds a list goes on, if not empty.")

    @model_validator(mode="after")
    def _limited(self) -> Self:
        if self.count is None and self.seconds is None:
            raise PydanticCustomError(
                COMPLAINT, "{reason}", {"reason": "has no limit; expected count, seconds or both"}
            )
        return self


class BufferConfig(OperatorConfig):
    """Gathers messages and passes them on as one list of their contents."""

    buffer: BufferSettings = Field(description="Gathers messages into a list: by count, by seconds, or by both.")


class DebounceConfig(OperatorConfig):
    """Lets a message through when none has followed it for a while."""

    debounce: Seconds = Field(description="Seconds of quiet after which the last message goes on; others are dropped.")


class ThrottleConfig(OperatorConfig):
    """Lets a message through, then none for a while."""

    throttle: Seconds = Field(description="Seconds after a message in which further ones are dropped.")


class DistinctConfig(OperatorConfig):
    """Lets a message through when there has been none like it."""

    distinct: Expression = Field(
        description="A Python expression; a message goes on when its value is new. 'message' compares whole messages."
    )


class TakeConfig(OperatorConfig):
    """Lets the first messages through."""

    take: Count = Field(description="How many messages go on; the rest is dropped.")


class SkipConfig(OperatorConfig):
    """Drops the first messages."""

    skip: Count = Field(description="How many messages are dropped; the rest goes on.")


class DelayConfig(OperatorConfig):
    """Passes messages on later."""

    delay: Seconds = Field(description="Seconds by which every message is held back.")


class ScanSettings(Section):
    """How one value comes of all messages so far."""

    value: Expression = Field(
        description="A Python expression that also sees accumulated, its own value for the message before."
    )
    seed: Annotated[Any, AfterValidator(json_value)] = Field(
        default=None, description="What accumulated is at first; without it, the first message goes on as it is."
    )


class ScanConfig(OperatorConfig):
    """Passes on, for each message, what all messages so far amount to."""

    modifiable = True

    scan: ScanSettings = Field(description="Passes on what all messages so far amount to.")


class ParallelSettings(Section):
    """Who is asked, and what becomes of the replies."""

    agents: Annotated[tuple[str, ...], BeforeValidator(as_tuple), AfterValidator(distinct), Field(min_length=1)] = (
        Field(description="The agents that are asked at the same time.")
    )
    join: Literal["all", "first", "majority"] = Field(
        default="all",
        description="all: every reply, by agent; first: the first reply; majority: the reply of more than half.",
    )


class ParallelConfig(OperatorConfig):
    """Asks several agents at the same time, and joins their replies."""

    modifiable = True

    parallel: ParallelSettings = Field(description="Asks several agents about each message at the same time.")

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that the operator asks."""
        return self.parallel.agents


class SwitchCase(Section):
    """A condition, and who is asked when it is true."""

    when: Expression | None = Field(
        default=None, description="A Python expression; without it, the case is always chosen."
    )
    agent: str = Field(description="The agent that is asked.")


def _some_cases(cases: tuple[SwitchCase, ...]) -> tuple[SwitchCase, ...]:
    if not cases:
        raise _complaint("is empty; expected at least one case")
    return cases


class SwitchConfig(OperatorConfig):
    """Asks the agent of the first case whose condition is true; without one, the message goes on as it is."""

    modifiable = True

    switch: Annotated[tuple[SwitchCase, ...], BeforeValidator(as_tuple), AfterValidator(_some_cases)] = Field(
        description="Cases in order; the agent of the first one that is true is asked."
    )

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that the operator asks."""
        return tuple(case.agent for case in self.switch)


class RetrySettings(Section):
    """How often to try, and how long to wait in between."""

    attempts: Annotated[int, Field(gt=0, le=20)] = Field(description="How often to try in all.")
    backoff: Seconds = Field(
        default=1.0, description="Seconds before the second attempt; twice as many each time after."
    )


class RetryConfig(ModifierConfig):
    """Tries the step before it again when it fails for a reason that may pass."""

    retry: RetrySettings = Field(description="Tries the step before it again when it fails for a reason that may pass.")


class TimeoutConfig(ModifierConfig):
    """Ends the step before it when it takes too long."""

    timeout: Seconds = Field(description="Seconds after which the step before it has failed.")


AGENT = "name of an agent"
"""The member of ``Step`` that is no operator; no operator can have this name."""


def _kind(step: Any) -> str | None:
    """Which member of ``Step`` a value is: a text names an agent, the only key of a mapping its operator."""
    if isinstance(step, str):
        return AGENT
    if isinstance(step, OperatorConfig):
        return next(iter(type(step).model_fields))
    if isinstance(step, Mapping) and len(step) == 1:
        return str(next(iter(step)))
    return None


# A new operator is a class above and a line here.
Step = Annotated[
    Annotated[str, Tag(AGENT)]
    | Annotated[BufferConfig, Tag("buffer")]
    | Annotated[DebounceConfig, Tag("debounce")]
    | Annotated[DelayConfig, Tag("delay")]
    | Annotated[DistinctConfig, Tag("distinct")]
    | Annotated[FilterConfig, Tag("filter")]
    | Annotated[MapConfig, Tag("map")]
    | Annotated[ParallelConfig, Tag("parallel")]
    | Annotated[RetryConfig, Tag("retry")]
    | Annotated[ScanConfig, Tag("scan")]
    | Annotated[SkipConfig, Tag("skip")]
    | Annotated[SwitchConfig, Tag("switch")]
    | Annotated[TakeConfig, Tag("take")]
    | Annotated[ThrottleConfig, Tag("throttle")]
    | Annotated[TimeoutConfig, Tag("timeout")],
    Discriminator(_kind),
]


def in_order(steps: tuple[str | OperatorConfig, ...]) -> tuple[str | OperatorConfig, ...]:
    """The steps of a route, if each modifier among them has a step to modify."""
    modifiable = False
    for step in steps:
        if not isinstance(step, ModifierConfig):
            modifiable = isinstance(step, str) or step.modifiable
        elif not modifiable:
            name = next(iter(type(step).model_fields))
            reason = f"{name} must follow the step it is for: an agent, parallel, switch, filter, map or scan"
            raise _complaint(reason)
    return steps


OPERATORS: dict[str, type[OperatorConfig]] = {
    next(iter(model.model_fields)): model
    for model in (get_args(member)[0] for member in get_args(get_args(Step)[0]))
    if issubclass(model, OperatorConfig)
}
"""Every operator's model by the operator's name."""
