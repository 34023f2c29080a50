"""An agent that asks an llm: a provider's, that of any OpenAI-compatible server, or one on this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from cleveragents.agents.agent import Agent, Message, Reply, Said, said_text
from cleveragents.agents.events import AnswerCutOff, LLMUsed, TextDelta, ToolCalled, ToolReturned, tell
from cleveragents.config.llm_settings import LLMSettings, as_sent, setting_values
from cleveragents.conversation.content import CUT_OFF, content_text
from cleveragents.conversation.transcript import Step, ToolCall, estimated_tokens
from cleveragents.conversation.usage import Usage
from cleveragents.errors import AgentError, InvalidSettingError, InvalidValueError
from cleveragents.values.json import dump_json, json_value, load_json
from cleveragents.values.merge import difference, merged
from cleveragents.values.text import clean_text

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart, ToolReturnPart
    from pydantic_ai.settings import ModelSettings
    from pydantic_ai.tools import ToolDefinition

    from cleveragents.agents.llm.client import Chat

MAX_TOOL_ROUNDS = 20
"""How often an llm may ask for tools before it has to have answered."""

ANSWER_TOKENS = 4096
"""Tokens of an llm's limit that the history leaves for the answer, unless ``max_tokens`` says how long it may be."""

_ONE_MESSAGE = {"message": {"type": "string"}}


@dataclass(eq=False, repr=False)
class LLMAgent(LLMSettings):
    """Asks ``llm`` (``provider:model``, ``local`` or ``gguf:PATH``), which may call ``tools`` before it answers.

    ``system_prompt`` may show values of the global context, as ``{{ context.key }}``. The other settings are those of
    ``LLMSettings``: ``temperature`` (one in the message's context is obeyed over it), ``max_tokens`` for each answer,
    ``timeout`` in seconds for each request, and whatever is added there. A conversation that comes with a message goes
    before it. With ``base_url`` the llm is asked of an OpenAI-compatible server there. ``api_key_env`` names the
    environment variable that holds the key; without it, the provider's usual one does.
    """

    takes_conversation = True

    name: str
    llm: str
    _: KW_ONLY
    system_prompt: str = ""
    tools: Sequence[Agent] = ()
    base_url: str | None = None
    api_key_env: str | None = None

    async def process(self, message: Message) -> Reply:
        """The llm's answer to ``message``, told piece by piece as it arrives, and what its tools changed.

        Raises LLMError: one line that says what is wrong and what to do.
        """
        settings = self._settings(message.context)
        instructions = await self._instructions(message.context)

        client = await self._client()
        async with client.connect(self.name, self.llm, self.base_url, self.api_key_env) as chat:
            turn = _Turn(self, message, chat, settings, instructions)
            try:
                return await turn.answer()
            except AgentError as error:
                error.usage = turn.usage
                raise

    async def _client(self) -> ModuleType:
        """What asks llms: a second or more of imports, which only those pay for who ask one."""
        import asyncio
        from importlib import import_module

        from cleveragents import background
        from cleveragents.agents.llm.local import begin, is_local

        if is_local(self.llm):
            # The weights load while the libraries do.
            begin(self.name, self.llm)
        # In a thread, because a Ctrl-C cannot interrupt an import in the event loop's.
        return await asyncio.wrap_future(background.start(lambda: import_module("cleveragents.agents.llm.client")))

    def _settings(self, context: Mapping[str, Any]) -> ModelSettings:
        from cleveragents.agents.llm.errors import llm_error
        from cleveragents.agents.llm.local import MAX_TOKENS, is_local
        from cleveragents.config.faults import check_settings

        values = setting_values(self)
        # 0 is a temperature: only None stands for none given.
        if (override := context.get("temperature")) is not None:
            try:
                check_settings({"temperature": override})
            except InvalidSettingError as error:
                why = f"{error}; it comes from the global context, where it can be changed or removed"
                raise llm_error(self.name, self.llm, why) from None
            values["temperature"] = override
        if values["max_tokens"] is None and is_local(self.llm):
            values["max_tokens"] = MAX_TOKENS
        try:
            check_settings(values)
        except InvalidSettingError as error:
            raise llm_error(self.name, self.llm, str(error)) from None
        return cast("ModelSettings", as_sent(values))

    async def _instructions(self, context: Mapping[str, Any]) -> str | None:
        from cleveragents.agents.llm.instructions import instructions
        from cleveragents.agents.llm.local import LOCAL, SYSTEM_PROMPT

        prompt = self.system_prompt or (SYSTEM_PROMPT if self.llm == LOCAL else "")
        return clean_text(await instructions(self.name, prompt, context)) or None


class _Turn:
    """One answer: a request to the llm, and another one after each round of tool calls."""

    def __init__(
        self, agent: LLMAgent, message: Message, chat: Chat, settings: ModelSettings, instructions: str | None
    ) -> None:
        self._agent = agent
        self._tools = {tool.name: tool for tool in agent.tools}
        self._message = message
        conversation = message.conversation
        self._question = message.text if conversation is None else conversation.composed(message.text)
        self._chat = chat
        self._settings = settings
        self._instructions = instructions
        self._context = dict(message.context)
        self.usage = Usage(llm=agent.llm, cost=Decimal(0))
        self._said: list[Said] = []

    async def answer(self) -> Reply:
        from pydantic_ai.messages import ModelRequest, UserPromptPart

        question = UserPromptPart(clean_text(self._question))
        messages = [*await self._history(), ModelRequest([question], instructions=self._instructions)]
        rounds = 0
        while True:
            text, response = await self._ask(messages)
            cut = self._cut_off(response)
            if not response.tool_calls:
                break
            if rounds == MAX_TOOL_ROUNDS:
                raise self._error(f"it called tools {rounds} times in a row without coming to an answer")
            rounds += 1
            returns = await self._round(response.tool_calls, text)
            messages += [response, ModelRequest(returns, instructions=self._instructions)]
        whole = said_text([*self._said, Said(text)])
        if not whole.strip():
            raise self._error(_why_empty(response, self._settings.get("max_tokens")))
        changes = difference(self._message.context, self._context)
        # An llm that says nothing after its calls has answered before them.
        in_steps = text.strip() and said_text(self._said).strip()
        said = [*self._said, Said(text)] if in_steps else ()
        return Reply(whole, changes.set, changes.removed, self.usage, said, cut)

    def _cut_off(self, response: ModelResponse) -> str:
        """Why an answer is not whole, which has been told; "" where it is. A call that is not whole is not run."""
        from cleveragents.agents.llm.ending import cut_off, is_cut_call

        cut = cut_off(response, self._settings.get("max_tokens"))
        if cut is None:
            return ""
        if is_cut_call(response.tool_calls):
            raise self._error(f"its answer was cut off in a call of a tool, which was not run: {cut.told}")
        if response.text or said_text(self._said).strip():
            tell(AnswerCutOff(self._agent.name, cut.reason, cut.told))
        return cut.reason

    async def _history(self) -> list[ModelMessage]:
        """What was said before, as much of it as the llm can hold besides the question and its answer."""
        conversation = self._message.conversation
        if conversation is None:
            return []
        from cleveragents.agents.llm.pydantic_messages import model_messages
        from cleveragents.agents.llm.token_limit import token_limit

        # Tokens are estimated, so a tenth is left over.
        limit = token_limit(self._agent.llm) * 9 // 10
        room = self._settings.get("max_tokens") or min(ANSWER_TOKENS, limit // 4)
        tools = dump_json([tool.parameters_json_schema for tool in _definitions(self._tools)])
        rest = sum(map(estimated_tokens, (self._question, self._instructions or "", tools)))
        return model_messages(await conversation.turns(limit - room - rest))

    async def _round(self, calls: Sequence[ToolCallPart], text: str) -> list[ToolReturnPart]:
        """What the tools gave back, stored before the llm is told; when that is broken off, as far as it came."""
        returns: list[ToolReturnPart] = []
        try:
            for call in calls:
                returns.append(await self._call(call))  # noqa: PERF401 - what came before an interruption is kept
        finally:
            conversation = self._message.conversation
            if conversation is not None:
                await conversation.keep(self._agent.name, Step(text, _with_results(calls, returns)))
        self._said.append(Said(text, kept=conversation is not None))
        return returns

    async def _ask(self, messages: Sequence[ModelMessage]) -> tuple[str, ModelResponse]:
        """The text of an answer, which has been told as it came, and the whole of it."""
        from pydantic_ai.models import ModelRequestParameters

        from cleveragents.agents.llm.prices import request_usage, unknown_usage

        parameters = ModelRequestParameters(function_tools=_definitions(self._tools))
        # What was said before a tool was called is one paragraph, what is said after it another.
        gap = "\n\n" if said_text(self._said) else ""
        text = ""
        pieces = self._chat.stream(messages, self._settings, parameters, self._agent.max_wait)
        try:
            async with aclosing(pieces):
                async for piece in _clean(pieces):
                    if not isinstance(piece, str):
                        response = piece
                    else:
                        text += piece
                        tell(TextDelta(self._agent.name, gap + piece))
                        gap = ""
        finally:
            if self._chat.unaccounted:
                self._count(unknown_usage(self._agent.llm, self._chat.unaccounted))
                self._chat.unaccounted = 0
        self._count(request_usage(self._agent.llm, response.usage))
        return text, response

    def _count(self, used: Usage) -> None:
        self.usage += used
        tell(LLMUsed(self._agent.name, used))

    async def _call(self, call: ToolCallPart) -> ToolReturnPart:
        """What a tool gave back, or why it failed: either way the llm is told, and goes on."""
        from pydantic_ai.messages import ToolReturnPart

        agent, tool, call_id = self._agent.name, call.tool_name, call.tool_call_id
        content: Any
        try:
            arguments = _arguments(call.args)
        except InvalidValueError as error:
            tell(ToolCalled(agent, tool, call_id, call.args))
            content, failed = f"the arguments cannot be read: {error}", True
        else:
            tell(ToolCalled(agent, tool, call_id, arguments))
            content, failed = await self._run(tool, arguments)
        tell(ToolReturned(agent, tool, call_id, content, failed))
        result = clean_text(content_text(content))
        return ToolReturnPart(tool, result, call_id, outcome="failed" if failed else "success")

    async def _run(self, name: str, arguments: dict[str, Any]) -> tuple[Any, bool]:
        """A tool's result, or an error's text and True; the tool's changes are seen by those called after it."""
        tool = self._tools.get(name)
        if tool is None:
            return f"there is no tool {name!r}; there are: {', '.join(self._tools) or 'none'}", True
        content = arguments.get("message", self._message.content)
        metadata = {**self._message.metadata, "input": arguments}
        try:
            reply = await tool.process(Message(content, self._context, metadata))
        except AgentError as error:
            if error.usage is not None:
                self.usage += error.usage
            return str(error), True
        self._context = merged(self._context, reply.changes, reply.removed)
        if reply.usage is not None:
            self.usage += reply.usage
        return reply.content, False

    def _error(self, reason: str) -> AgentError:
        from cleveragents.agents.llm.errors import llm_error

        return llm_error(self._agent.name, self._agent.llm, reason)


async def _clean(pieces: AsyncIterator[str | ModelResponse]) -> AsyncIterator[str | ModelResponse]:
    """``pieces`` as text that can be stored; a character whose halves arrive apart is put together."""
    half = ""
    async for piece in pieces:
        text = half + piece if isinstance(piece, str) else half
        half = ""
        if isinstance(piece, str) and "\ud800" <= text[-1:] <= "\udbff":
            text, half = text[:-1], text[-1]
        if text:
            yield clean_text(text)
        if not isinstance(piece, str):
            yield piece


def _definitions(tools: Mapping[str, Agent]) -> list[ToolDefinition]:
    """The tools as an llm is told of them. A parameter without a default has to be given."""
    from pydantic_ai.tools import ToolDefinition

    definitions = []
    for name, tool in tools.items():
        # An agent of any other kind takes a message and says nothing about itself.
        parameters = getattr(tool, "parameters", None) or _ONE_MESSAGE
        required = [key for key, schema in parameters.items() if not (isinstance(schema, dict) and "default" in schema)]
        schema = {"type": "object", "properties": dict(parameters), "required": required}
        description = getattr(tool, "description", "") or None
        definitions.append(ToolDefinition(name=name, parameters_json_schema=schema, description=description))
    return definitions


def _with_results(calls: Sequence[ToolCallPart], returns: Sequence[ToolReturnPart]) -> tuple[ToolCall, ...]:
    results = [(str(given.content), given.outcome == "failed") for given in returns]
    results += [(CUT_OFF, True)] * (len(calls) - len(returns))
    return tuple(
        ToolCall(call.tool_call_id, call.tool_name, _stored_arguments(call), result, failed)
        for call, (result, failed) in zip(calls, results, strict=True)
    )


def _stored_arguments(call: ToolCallPart) -> dict[str, Any]:
    try:
        return _arguments(call.args)
    except InvalidValueError:
        # The call's result says that they could not be read.
        return {}


def _arguments(given: str | Mapping[str, Any] | None) -> dict[str, Any]:
    arguments = load_json(given) if isinstance(given, str) and given.strip() else given or {}
    if not isinstance(arguments, dict):
        raise InvalidValueError("they are not an object of names and values")
    return dict(json_value(arguments))


def _why_empty(response: ModelResponse, max_tokens: int | None) -> str:
    from cleveragents.agents.llm.errors import EMPTY_ANSWER

    if response.finish_reason == "length":
        limit = f" of {max_tokens} tokens" if max_tokens else ""
        return f"it came to its limit{limit} before it said anything; raise 'max_tokens'"
    if refusal := (response.provider_details or {}).get("refusal"):
        return f"it refuses to answer: {refusal}"
    if response.finish_reason == "content_filter":
        return "its provider's filter stopped the answer; ask in other words"
    return EMPTY_ANSWER
