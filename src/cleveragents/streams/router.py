"""The router: agents joined by routes, and what a run of them gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from cleveragents.agents.agent import Agent, Message
from cleveragents.config.models import HOP_LIMIT, LimitsConfig, RouteConfig
from cleveragents.conversation.usage import Usage
from cleveragents.errors import AgentError, NoOutputError, StreamError
from cleveragents.streams.budget import Budget
from cleveragents.streams.network import Network
from cleveragents.streams.run import Run


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run gave: contents of outputs in order of arrival, the global context at the end, usage, errors.

    ``messages`` are the outputs as they flowed, with the agent that each came from. ``usages`` is what each llm used.
    An error has the ``agent``, ``route`` and ``message`` that it is about. ``cut_off`` says of each agent whose answer
    was cut off before it was whole why, in one word: ``length``, ``window``, ``content_filter``, ``refusal``, or a
    server's own.
    """

    outputs: list[Any] = field(default_factory=list)
    context: dict[str, Any] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    errors: list[AgentError | StreamError] = field(default_factory=list)
    usages: list[Usage] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    cut_off: dict[str, str] = field(default_factory=dict)

    @property
    def output(self) -> Any:
        """The last output, or None when there is none."""
        return self.outputs[-1] if self.outputs else None

    @property
    def distinct_messages(self) -> list[Message]:
        """``messages``, with one that came to the output on several ways once, as it is kept in a conversation."""
        return list({id(message): message for message in self.messages}.values())


class StreamRouter:
    """Agents by name, and the routes that join them. It keeps nothing between runs, and may run several at once.

    ``hop_limit`` is how many routes of a loop one message may enter. ``on_error`` says for some of the agents what
    becomes of a message on which they fail: fail, skip, or the name of the agent that is asked instead; for the
    others, their route says it. Raises ConfigError when a route, or ``on_error``, names what is not there.
    ``limits`` bound what all steps of a run put out together.
    """

    def __init__(
        self,
        agents: Mapping[str, Agent],
        routes: Sequence[RouteConfig],
        *,
        hop_limit: int = HOP_LIMIT,
        on_error: Mapping[str, str] | None = None,
        limits: LimitsConfig | None = None,
    ) -> None:
        self._agents = dict(agents)
        self._hop_limit = hop_limit
        self._limits = limits or LimitsConfig()
        self.network = Network(routes, self._agents, on_error or {})

    async def run(self, message: Message) -> RunResult:
        """Send ``message`` through the network, whose global context begins as the message's.

        Errors of single messages are in the result. Raises the first of them when there is no output, and
        NoOutputError, which says where the message ended, when there is neither.
        """
        async with self.start(message.context) as run:
            return await result_of(run, message)

    def start(self, context: Mapping[str, Any] | None = None) -> Run:
        """A run for many messages, which share ``context`` as the run's global context; see ``Run``."""
        return Run(self.network, self._agents, context or {}, self._hop_limit, Budget(self._limits))


async def result_of(run: Run, message: Message) -> RunResult:
    """What comes of ``message`` in ``run``, a run begun for it alone; raises as ``StreamRouter.run`` does."""
    messages: list[Message] = []
    errors: list[AgentError | StreamError] = []
    async with aclosing(run.results([message])) as results:
        async for result in results:
            if isinstance(result, Message):
                messages.append(result)
            else:
                errors.append(result)
    await run.end()
    if not messages:
        failure = errors[0] if errors else NoOutputError(f"no output: {run.why_nothing()}")
        failure.usage = run.usage
        raise failure
    outputs = [message.output for message in messages]
    usages, cut_off = list(run.usages.values()), dict(run.cut_off)
    return RunResult(outputs, dict(run.context), run.usage, errors, usages, messages, cut_off)
