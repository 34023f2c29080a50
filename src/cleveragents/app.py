"""The application: history in, streams through, answer out, and each part of a turn on disk when it happens."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleveragents.agents.agent import Message
from cleveragents.agents.build import build_agents
from cleveragents.agents.events import AgentEvent, Listener, LLMUsed, TextDelta, listening
from cleveragents.config import AppConfig, load_config
from cleveragents.config.faults import check_settings
from cleveragents.config.fields import llm_name, shown
from cleveragents.config.operators import ModifierConfig, RetryConfig
from cleveragents.config.vocabulary import FAIL, SKIP
from cleveragents.conversation.content import content_text
from cleveragents.conversation.prompt import format_prompt
from cleveragents.conversation.transcript import Window
from cleveragents.conversation.usage import Usage
from cleveragents.errors import CleverAgentsError, ContextBusyError, InvalidSettingError
from cleveragents.streams.router import RunResult, StreamRouter, result_of
from cleveragents.values.merge import Changes, difference, merged
from cleveragents.values.text import clean_text

if TYPE_CHECKING:
    from cleveragents.contexts import ContextManager
    from cleveragents.sessions.service import SessionService

MAX_PROMPT_BYTES = 2_000_000
"""More than any llm reads; what was stored has to fit into a later prompt as well."""

TURN_WAIT = 30.0
"""Seconds that a run waits for another run's turn on the same context."""


class CleverAgentsApp:
    """The agents of one configuration, ready to run.

    ``temperature`` (0 to 2) overrides that of every llm agent; ``unsafe`` runs tool code as ordinary Python in
    a child process; ``llm`` replaces the llm of every llm agent. ``sessions`` is where runs on sessions find them.
    Raises ConfigError or InvalidSettingError before anything runs.
    """

    def __init__(
        self,
        config: AppConfig | Path,
        *,
        temperature: float | None = None,
        unsafe: bool = False,
        llm: str | None = None,
        sessions: SessionService | None = None,
    ) -> None:
        self._sessions = sessions
        self.config = config if isinstance(config, AppConfig) else load_config(config)
        check_settings({"temperature": temperature})
        self._temperature = temperature
        if llm is not None:
            _checked("llm", llm_name, llm)
        self._routes = self.config.network()
        self._router = StreamRouter(
            build_agents(self.config, unsafe=unsafe, llm=llm),
            self._routes,
            hop_limit=self.config.hop_limit,
            on_error=self.config.on_error,
        )

    @property
    def global_context(self) -> dict[str, Any]:
        """The global context that a run without a named context starts with."""
        return self._starting_context({})

    @property
    def answering_agent(self) -> str | None:
        """The agent whose text is the answer word for word, so that it can be shown as it arrives, if there is one.

        That is the last step of the only route to the output, when one message can come through at a time.
        """
        ending = [route for route in self._routes if "output" in route.to]
        if len(ending) != 1:
            return None
        steps = [step for step in ending[0].through if not isinstance(step, ModifierConfig)]
        if not steps or not isinstance(steps[-1], str) or self._asked().count(steps[-1]) != 1:
            return None
        modifiers = takewhile(lambda step: isinstance(step, ModifierConfig), reversed(ending[0].through))
        stand_in = self.config.on_error.get(steps[-1], ending[0].on_error)
        if stand_in not in {FAIL, SKIP} or any(isinstance(step, RetryConfig) for step in modifiers):
            # What a failed attempt said is not the answer.
            return None
        sources = {route.name: route.source for route in self._routes}
        route, passed = ending[0].name, set[str]()
        while route != "input":
            if route in passed or len(sources[route]) != 1 or any(route in other.to for other in self._routes):
                return None
            passed.add(route)
            route = sources[route][0]
        return steps[-1]

    def _asked(self) -> list[str]:
        """The names of the agents that the routes ask, once for each place where they are asked."""
        steps = [step for route in self._routes for step in route.through]
        stand_ins = [*self.config.on_error.values(), *(route.on_error for route in self._routes)]
        return [*stand_ins, *(name for step in steps for name in ([step] if isinstance(step, str) else step.agents))]

    async def run(
        self,
        prompt: str,
        *,
        context: ContextManager | None = None,
        session_id: str | None = None,
        listener: Listener | None = None,
        wait: float = TURN_WAIT,
    ) -> RunResult:
        """Send ``prompt`` through the network and give back what came out.

        With ``context``, the last messages are put before the prompt, the prompt is on disk before an agent
        runs, the answer and the changes of the global context after. With ``session_id``, the first llm agent gets
        what was said in the session in its own roles, and the tools it calls are stored as well. ``listener`` is
        told what agents do while they do it. Raises ContextBusyError or SessionBusyError when another run holds
        either for ``wait`` seconds, and the error of an agent when nothing but errors came out; what was said until
        then stays.
        """
        prompt = clean_text(prompt)
        if not prompt.strip():
            raise InvalidSettingError("the prompt is empty")
        if (size := len(prompt.encode())) > MAX_PROMPT_BYTES:
            raise InvalidSettingError(
                f"the prompt is {size:,} bytes long, and at most {MAX_PROMPT_BYTES:,} are taken; shorten it"
            )
        if session_id is not None:
            if context is not None:
                raise InvalidSettingError("a run is on a context or on a session, not on both")
            return await self._run_on(session_id, prompt, listener, wait)
        if context is None:
            with listening(listener):
                return await self._router.run(Message(prompt, self.global_context))
        async with _turn_of(context, wait):
            return await self._run_in(context, prompt, listener)

    def run_sync(
        self,
        prompt: str,
        *,
        context: ContextManager | None = None,
        session_id: str | None = None,
        listener: Listener | None = None,
        wait: float = TURN_WAIT,
    ) -> RunResult:
        """``run``, from ordinary code."""
        return asyncio.run(self.run(prompt, context=context, session_id=session_id, listener=listener, wait=wait))

    async def _run_in(self, context: ContextManager, prompt: str, listener: Listener | None) -> RunResult:
        # The context is read and written without an await: each call is short, and a Ctrl-C, which cancels at
        # an await, cannot come between an answer and its place on disk.
        limits = self.config.history
        recent = context.last_messages(limits.messages)
        before = self._starting_context(context.global_context)
        context.add_message("user", prompt)
        asked = format_prompt(prompt, recent, limit=limits.messages, assistant_limit=limits.assistant_characters)
        answer = _Answer(listener, self.answering_agent)
        with listening(answer.listen):
            run = self._router.start(before)
        try:
            async with run:
                result = await result_of(run, Message(asked, before))
        except BaseException:
            if answer.text:
                context.add_message("assistant", answer.text, {"interrupted": True})
            self._save(context, before, run.context)
            raise
        with _handing_over(result):
            for output in result.outputs:
                context.add_message("assistant", content_text(output))
            self._save(context, before, run.context)
        return result

    async def _run_on(self, session_id: str, prompt: str, listener: Listener | None, wait: float) -> RunResult:
        if self._sessions is None:
            raise InvalidSettingError("a run on a session needs sessions=, such as open_sessions()")
        from cleveragents.turns.session import SessionTurn

        limits = self.config.history.window
        window = None if limits is None else Window(**limits.model_dump())
        turn = SessionTurn(self._sessions, session_id, window)
        async with turn.held(wait):
            before = self._starting_context(await turn.begin(prompt, self.config.path))
            answer = _Answer(listener, self.answering_agent)
            with listening(answer.listen):
                run = self._router.start(before)
            try:
                async with run:
                    result = await result_of(run, Message(prompt, before, conversation=turn))
            except BaseException as error:
                said = (self.answering_agent or "", answer.text)
                await turn.break_off(error, said, answer.used.values(), self._changes(before, run.context))
                raise
            outputs = zip(result.agents, map(content_text, result.outputs), strict=True)
            with _handing_over(result):
                await turn.end(outputs, answer.used.values(), self._changes(before, run.context))
        return result

    def _save(self, context: ContextManager, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """Keep what agents changed in the global context, those of a run that failed or was ended included."""
        if changes := self._changes(before, after):
            context.update_global_context(changes.set, changes.removed)

    def _changes(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Changes:
        changes = difference(before, after)
        if self._temperature is not None:
            changes.set.pop("temperature", None)
        return changes

    def _starting_context(self, saved: Mapping[str, Any]) -> dict[str, Any]:
        """The file's ``context:``, under what was saved, under this run's temperature."""
        override = {} if self._temperature is None else {"temperature": self._temperature}
        return merged(merged(self.config.context, saved), override)


@contextmanager
def _handing_over(result: RunResult) -> Iterator[None]:
    """Around the keeping of ``result``: when that fails, the error carries it, for it may have cost money."""
    try:
        yield
    except CleverAgentsError as error:
        error.result = result
        raise


@dataclass
class _Answer:
    """What has arrived so far of one answer, and what each llm has used for it."""

    listener: Listener | None
    answering_agent: str | None = None
    pieces: list[str] = field(default_factory=list)
    used: dict[str, Usage] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def listen(self, event: AgentEvent) -> None:
        if isinstance(event, TextDelta) and event.agent == self.answering_agent:
            self.pieces.append(event.text)
        if isinstance(event, LLMUsed):
            before = self.used.get(event.usage.llm)
            self.used[event.usage.llm] = event.usage if before is None else before + event.usage
        if self.listener is not None:
            self.listener(event)


def _checked(what: str, check: Callable[[Any], Any], value: Any) -> Any:
    """``value`` if the rule of the configuration lets it through. Raises InvalidSettingError naming ``what``."""
    try:
        return check(value)
    except ValueError as error:
        raise InvalidSettingError(f"{what} {shown(value)} {error}") from None


@asynccontextmanager
async def _turn_of(context: ContextManager, wait: float) -> AsyncIterator[None]:
    """Hold the context's turn. Asked for again and again, not waited for, so that a Ctrl-C ends it at once."""
    deadline = time.monotonic() + wait
    while True:
        turn = context.turn(0)
        try:
            turn.__enter__()
        except ContextBusyError:
            if not time.monotonic() < deadline:
                raise
            await asyncio.sleep(0.05)
        else:
            break
    try:
        yield
    finally:
        turn.__exit__(None, None, None)
