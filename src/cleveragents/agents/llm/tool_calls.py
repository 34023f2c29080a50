"""The tools of an llm agent: how an llm is told of them, and what becomes of its calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cleveragents.agents.agent import Agent, Message
from cleveragents.agents.events import ToolCalled, ToolReturned, tell
from cleveragents.agents.llm.parameters import Parameters
from cleveragents.conversation.arguments import kept_arguments, read_arguments
from cleveragents.conversation.content import CUT_OFF, NOTHING, content_text
from cleveragents.conversation.transcript import ToolCall
from cleveragents.conversation.usage import Usage
from cleveragents.errors import AgentError, InvalidValueError
from cleveragents.values.merge import merged
from cleveragents.values.text import clean_text

if TYPE_CHECKING:
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tools import ToolDefinition


class Tools:
    """What an llm may call, by name. Raises InvalidSettingError for parameters that are no JSON Schemas."""

    def __init__(self, tools: Sequence[Agent]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        # An agent of any other kind says nothing about itself.
        self._parameters = {
            name: Parameters(name, getattr(tool, "parameters", None)) for name, tool in self._tools.items()
        }

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """What each tool takes."""
        return [parameters.schema for parameters in self._parameters.values()]

    def definitions(self) -> list[ToolDefinition]:
        """The tools as an llm is told of them."""
        from pydantic_ai.tools import ToolDefinition

        return [
            ToolDefinition(
                name=name,
                parameters_json_schema=self._parameters[name].schema,
                description=getattr(tool, "description", "") or None,
            )
            for name, tool in self._tools.items()
        ]

    def called(self, name: str, given: Any) -> tuple[Agent, dict[str, Any]]:
        """The tool of this ``name``, and the arguments to run it with. Raises InvalidValueError, for the llm."""
        tool = self._tools.get(name)
        if tool is None:
            raise InvalidValueError(f"there is no tool {name!r}; there are: {', '.join(self._tools) or 'none'}")
        try:
            arguments = read_arguments(given)
        except InvalidValueError as error:
            raise InvalidValueError(f"the arguments cannot be read: {error}") from None
        return tool, self._parameters[name].completed(arguments)


class Calls:
    """The calls that one answer takes: each tool sees what those before it have changed.

    ``context`` is the global context with all changes, ``usage`` what the tools used.
    """

    def __init__(self, agent: str, tools: Tools, message: Message) -> None:
        self._agent = agent
        self._tools = tools
        self._message = message
        self.context = dict(message.context)
        self.usage: list[Usage] = []

    async def run(self, call: ToolCallPart) -> ToolCall:
        """``call`` with what the tool gave back, or why it failed: either way the llm is told, and goes on."""
        agent, tool, call_id, arguments = self._agent, call.tool_name, call.tool_call_id, kept_arguments(call.args)
        tell(ToolCalled(agent, tool, call_id, arguments))
        try:
            content, failed = await self._result(tool, call.args), False
        except (AgentError, InvalidValueError) as error:
            content, failed = str(error), True
        tell(ToolReturned(agent, tool, call_id, content, failed))
        result = clean_text(content_text(content))
        return ToolCall(call_id, tool, arguments, result if result.strip() else NOTHING, failed)

    async def _result(self, name: str, given: Any) -> Any:
        tool, arguments = self._tools.called(name, given)
        content = arguments.get("message", self._message.content)
        try:
            reply = await tool.process(Message(content, self.context, {**self._message.metadata, "input": arguments}))
        except AgentError as error:
            self._count(error.usage)
            raise
        self._count(reply.usage)
        self.context = merged(self.context, reply.changes, reply.removed)
        return reply.content

    def _count(self, used: Usage | None) -> None:
        if used is not None:
            self.usage.append(used)


def broken_off(call: ToolCallPart) -> ToolCall:
    """``call`` as it is kept when its tool did not come to an end."""
    return ToolCall(call.tool_call_id, call.tool_name, kept_arguments(call.args), CUT_OFF, failed=True)
