"""An agent that asks an llm: a provider's, that of any OpenAI-compatible server, or one on this machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from cleveragents.agents.agent import Agent, Message, Reply, Said, said_text
from cleveragents.agents.events import AnswerCutOff, LLMUsed, PromptShortened, TextDelta, tell
from cleveragents.agents.llm.tool_calls import Calls, Tools, broken_off
from cleveragents.config.llm_settings import LLMSettings, as_sent, setting_values
from cleveragents.conversation.transcript import Step, ToolCall, Turn, estimated_tokens
from cleveragents.conversation.usage import Usage
from cleveragents.conversation.window import Room
from cleveragents.errors import AgentError, InvalidSettingError
from cleveragents.values.json import dump_json
from cleveragents.values.merge import difference
from cleveragents.values.text import clean_text

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
    from pydantic_ai.settings import ModelSettings

    from cleveragents.agents.llm.client import Chat

MAX_TOOL_ROUNDS = 20
"""How often an llm may ask for tools before it has to have answered."""

ANSWER_TOKENS = 4096
"""Tokens of an llm's limit that the history leaves for the answer, unless ``max_tokens`` says how long it may be."""


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
        from asyncio import CancelledError

        settings = self._settings(message.context)
        instructions = await self._instructions(message.context)

        client = await self._client()
        async with client.connect(self.name, self.llm, self.base_url, self.api_key_env) as chat:
            turn = _Turn(self, self._announced, message, chat, settings, instructions)
            try:
                return await turn.answer()
            except (AgentError, CancelledError) as error:
                # Who is cancelled, since another one was first or time is up, has to be paid all the same.
                error.usage = turn.usage  # type: ignore[union-attr]
                raise

    @cached_property
    def _announced(self) -> Tools:
        return Tools(self.tools)

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
        self,
        agent: LLMAgent,
        tools: Tools,
        message: Message,
        chat: Chat,
        settings: ModelSettings,
        instructions: str | None,
    ) -> None:
        self._agent = agent
        self._tools = tools
        self._message = message
        conversation = message.conversation
        self._question = clean_text(message.text if conversation is None else conversation.composed(message.text))
        self._before: Sequence[Turn] | None = None
        self._chat = chat
        self._settings = settings
        self._instructions = instructions
        self._calls = Calls(agent.name, tools, message)
        self.usage = Usage(llm=agent.llm, cost=Decimal(0))
        self._said: list[Said] = []

    async def answer(self) -> Reply:
        from pydantic_ai.messages import ModelRequest, UserPromptPart

        from cleveragents.agents.llm.pydantic_messages import as_kept, results
        from cleveragents.agents.llm.token_limit import turn_tokens

        room = Room(turn_tokens(self._agent.llm))
        question = room.taken(self._question)
        if question != self._question:
            tell(PromptShortened(self._agent.name, len(self._question)))
        turn: list[ModelMessage] = [ModelRequest([UserPromptPart(question)], instructions=self._instructions)]
        rounds = 0
        while True:
            text, response = await self._ask([*await self._history(room.used), *turn])
            cut = self._cut_off(response)
            if not response.tool_calls:
                break
            if rounds == MAX_TOOL_ROUNDS:
                raise self._error(f"it called tools {rounds} times in a row without coming to an answer")
            rounds += 1
            step = room.step(await self._round(response.tool_calls, text))
            turn += [as_kept(response, step), ModelRequest(results(step), instructions=self._instructions)]
        whole = said_text([*self._said, Said(text)])
        if not whole.strip():
            raise self._error(_why_empty(response, self._settings.get("max_tokens")))
        changes = difference(self._message.context, self._calls.context)
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

    async def _history(self, used: int) -> list[ModelMessage]:
        """What was said before, as much of it as the llm can hold besides the answer and this turn, of ``used`` tokens.

        It stays the same as long as it fits.
        """
        conversation = self._message.conversation
        if conversation is None:
            return []
        from cleveragents.agents.llm.pydantic_messages import model_messages
        from cleveragents.agents.llm.token_limit import roomy_limit, token_limit, turn_tokens

        # Tokens are estimated, so a tenth is left over.
        limit = (token_limit if self._before is None else roomy_limit)(self._agent.llm) * 9 // 10
        answer = self._settings.get("max_tokens") or min(ANSWER_TOKENS, limit // 4)
        rest = sum(map(estimated_tokens, (self._instructions or "", dump_json(self._tools.schemas))))
        left = limit - answer - rest - used
        if self._before is None or sum(turn.tokens for turn in self._before) > left:
            self._before = await conversation.turns(left, turn_tokens(self._agent.llm))
        return model_messages(self._before)

    async def _round(self, calls: Sequence[ToolCallPart], text: str) -> Step:
        """The calls with what came back, stored before the llm is told; when that is broken off, as far as it came."""
        done: list[ToolCall] = []
        try:
            for call in calls:
                done.append(await self._calls.run(call))  # noqa: PERF401 - what came before an interruption is kept
        finally:
            self.usage = sum(self._calls.usage, self.usage)
            self._calls.usage.clear()
            step = Step(text.strip(), (*done, *map(broken_off, calls[len(done) :])))
            conversation = self._message.conversation
            if conversation is not None:
                await conversation.keep(self._agent.name, step)
        self._said.append(Said(text, kept=conversation is not None))
        return step

    async def _ask(self, messages: Sequence[ModelMessage]) -> tuple[str, ModelResponse]:
        """The text of an answer, which has been told as it came, and the whole of it."""
        from pydantic_ai.models import ModelRequestParameters

        from cleveragents.agents.llm.prices import request_usage, unknown_usage

        parameters = ModelRequestParameters(function_tools=self._tools.definitions())
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


def _why_empty(response: ModelResponse, max_tokens: int | None) -> str:
    from cleveragents.agents.llm.ending import cut_off
    from cleveragents.agents.llm.errors import EMPTY_ANSWER

    cut = cut_off(response, max_tokens)
    if cut is not None and cut.reason == "window":
        return f"it was cut off before it said anything: {cut.told}"
    if response.finish_reason == "length":
        limit = f" of {max_tokens} tokens" if max_tokens else ""
        return f"it came to its limit{limit} before it said anything; raise 'max_tokens'"
    if refusal := (response.provider_details or {}).get("refusal"):
        return f"it refuses to answer: {refusal}"
    if response.finish_reason == "content_filter":
        return "its provider's filter stopped the answer; ask in other words"
    return EMPTY_ANSWER
