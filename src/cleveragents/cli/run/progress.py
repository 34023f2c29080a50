"""What a run says on stderr: with ``-v``, a line for each thing that happens between agents; what it has used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cleveragents.cli.kit.tool_calls import call_line, result_line
from cleveragents.conversation.content import content_text
from cleveragents.values.json import dump_json

if TYPE_CHECKING:
    from cleveragents.agents.events import AgentEvent, PromptRead
    from cleveragents.conversation.usage import Usage

_PAUSE = 2.0  # seconds
_SHOWN = 80
"""Characters of a value that a line shows."""


def progress_line(event: AgentEvent) -> str | None:
    """What to say about ``event``; None for what is said elsewhere, or not at all."""
    from cleveragents.agents.events import AgentAnswered, ContextConflict, ErrorPassedOver, SettingLeftOut

    match event:
        case AgentAnswered():
            failed = f", failed: {event.error}" if event.error else ""
            return f"{event.route}: {event.agent} {event.seconds:.3f} s{failed}"
        case ErrorPassedOver(agent=""):
            return f"{event.route}: skipped: {event.error}"
        case ErrorPassedOver():
            return f"{event.route}: {event.agent} is asked instead: {event.error}"
        case SettingLeftOut():
            return f"{event.agent}: asked without its {event.setting}, which this llm does not take"
        case ContextConflict():
            path = ".".join(event.path)
            now, before = _short(event.after), _short(event.before)
            return f"{event.route}: conflict: {event.agent} set {path} to {now}, which was set to {before} meanwhile"
    return None


def tool_line(event: AgentEvent) -> str | None:
    """What to say of a call of a tool, or of its result; None for anything else."""
    from cleveragents.agents.events import ToolCalled, ToolReturned

    match event:
        case ToolCalled():
            return call_line(event.tool, event.arguments)
        case ToolReturned():
            return f"  {result_line(content_text(event.content), failed=event.failed)}"
    return None


class Reading:
    """What to say while an llm on this machine reads a long prompt, every two seconds at most."""

    def __init__(self) -> None:
        self._said: dict[str, float] = {}  # when, by agent

    def line(self, event: PromptRead, now: float) -> str | None:
        """What to say about ``event`` at the time ``now``, in seconds; None when that would be too often."""
        if now - self._said.setdefault(event.agent, now) < _PAUSE:
            return None
        self._said[event.agent] = now
        return f"{event.agent} has read {event.tokens:,} of {event.total:,} tokens"


def usage_line(usage: Usage) -> str:
    """What was used, and what that cost, if it is known."""
    from cleveragents.conversation.usage import money_text, nano_dollars

    unknown = usage.requests and usage.cost is None
    cost = "cost unknown" if unknown else f"cost ${money_text(nano_dollars(usage.cost or 0))}"
    return f"usage: {usage.input_tokens} tokens in, {usage.output_tokens} out, {cost}"


def _short(value: Any) -> str:
    text = dump_json(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
