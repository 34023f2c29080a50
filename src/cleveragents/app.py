"""The application: history in, streams through, answer out, and each part of a turn on disk when it happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleveragents.agents.agent import Message
from cleveragents.agents.build import build_agents
from cleveragents.agents.events import AgentEvent, Listener, TurnAwaited, listening
from cleveragents.config import AppConfig, load_config
from cleveragents.config.faults import check_settings
from cleveragents.config.fields import llm_name, shown
from cleveragents.disk.locks import TURN_WAIT
from cleveragents.errors import CleverAgentsError, InvalidSettingError
from cleveragents.streams.router import RunResult, StreamRouter, result_of
from cleveragents.turns.partial_answer import PartialAnswer
from cleveragents.turns.turn import Turn, UnkeptTurn
from cleveragents.values.merge import Changes, difference, merged
from cleveragents.values.text import clean_text

if TYPE_CHECKING:
    from cleveragents.contexts import ContextManager
    from cleveragents.sessions.service import SessionService

MAX_PROMPT_BYTES = 2_000_000
"""More than any llm reads; what was stored has to fit into a later prompt as well."""


class CleverAgentsApp:
    """The agents of one configuration, which is an AppConfig or the path of a YAML file, ready to run.

    ``temperature`` (0 to 2) overrides that of every llm agent; ``unsafe`` runs tool code as ordinary Python in
    a child process; ``llm`` replaces the llm of every llm agent. ``sessions`` is where runs on sessions find them.
    Raises ConfigError or InvalidSettingError before anything runs.
    """

    def __init__(
        self,
        config: AppConfig | str | PathLike[str],
        *,
        temperature: float | None = None,
        unsafe: bool = False,
        llm: str | None = None,
        sessions: SessionService | None = None,
    ) -> None:
        self._sessions = sessions
        self.config = config if isinstance(config, AppConfig) else load_config(_checked_path(config))
        check_settings({"temperature": temperature})
        self._temperature = temperature
        if llm is not None:
            _checked("llm", llm_name, llm)
        self._router = StreamRouter(
            build_agents(self.config, unsafe=unsafe, llm=llm),
            self.config.network(),
            hop_limit=self.config.hop_limit,
            on_error=self.config.on_error,
            limits=self.config.limits,
        )

    @property
    def global_context(self) -> dict[str, Any]:
        """The global context that a run without a named context starts with."""
        return self._starting_context({})

    @property
    def answering_agent(self) -> str | None:
        """The agent whose text is the answer word for word, so that it can be shown as it arrives, if there is one."""
        return self._router.network.answering_agent

    async def run(
        self,
        prompt: str,
        *,
        context: ContextManager | str | None = None,
        session_id: str | None = None,
        listener: Listener | None = None,
        wait: float = TURN_WAIT,
    ) -> RunResult:
        """Send ``prompt`` through the network and give back what came out.

        With ``context``, a ContextManager or its name, the last messages are put before the prompt, the prompt is on
        disk before an agent runs, the answer and the changes of the global context after. With ``session_id``, the
        first llm agent gets
        what was said in the session in its own roles, and the tools it calls are stored as well. ``listener`` is
        told what agents do while they do it. Raises ContextBusyError or SessionBusyError when another run holds
        either for ``wait`` seconds, and the error of an agent when nothing but errors came out; what was said until
        then stays.
        """
        prompt = _checked_prompt(prompt)
        answer = PartialAnswer(listener, self.answering_agent)
        turn = self._turn(context, session_id, answer)

        def late() -> None:
            if listener is not None:
                name = context if isinstance(context, str) else context and context.name
                listener(TurnAwaited(f"session {session_id}" if name is None else f"context {name!r}"))

        async with turn.held(wait, late):
            beginning = await turn.begin(prompt, self.config.path)
            before = self._starting_context(beginning.global_context)
            with listening(answer.listen):
                run = self._router.start(before)
            try:
                async with run:
                    result = await result_of(run, Message(beginning.text, before, conversation=beginning.conversation))
            except BaseException as error:
                await turn.break_off(error, self._changes(before, run.context))
                raise
            with _handing_over(result):
                await turn.end(result, self._changes(before, run.context))
        return result

    def run_sync(
        self,
        prompt: str,
        *,
        context: ContextManager | str | None = None,
        session_id: str | None = None,
        listener: Listener | None = None,
        wait: float = TURN_WAIT,
    ) -> RunResult:
        """``run``, from ordinary code. Raises RuntimeError in an event loop, which it would stop."""
        if _in_event_loop():
            raise RuntimeError("run_sync cannot be used in a running event loop; write 'await app.run(…)' there")
        return asyncio.run(self.run(prompt, context=context, session_id=session_id, listener=listener, wait=wait))

    async def stream(
        self,
        prompt: str,
        *,
        context: ContextManager | str | None = None,
        session_id: str | None = None,
        wait: float = TURN_WAIT,
    ) -> AsyncGenerator[AgentEvent | RunResult, None]:
        """``run``, giving what agents do while they do it, and the result as the last thing.

        Raises what ``run`` raises, after the events before it. Closing the iterator ends the run like a Ctrl-C: what
        came of the answer is kept.
        """
        events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        run = asyncio.create_task(
            self.run(prompt, context=context, session_id=session_id, listener=events.put_nowait, wait=wait)
        )
        run.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            yield await run
        finally:
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)

    def _turn(self, context: ContextManager | str | None, session_id: str | None, answer: PartialAnswer) -> Turn:
        """Where this run is kept."""
        if session_id is not None:
            if context is not None:
                raise InvalidSettingError("a run is on a context or on a session, not on both")
            if self._sessions is None:
                raise InvalidSettingError("a run on a session needs sessions=, such as open_sessions()")
            from cleveragents.turns.session import SessionTurn

            return SessionTurn(self._sessions, session_id, self.config.history.window, answer)
        if context is not None:
            from cleveragents.contexts import ContextManager
            from cleveragents.turns.context import ContextTurn

            named = ContextManager(context) if isinstance(context, str) else context
            return ContextTurn(named, self.config.history, answer)
        return UnkeptTurn()

    def _changes(self, before: Mapping[str, Any], after: Mapping[str, Any]) -> Changes:
        """What agents changed in the global context, those of a run that failed or was ended included."""
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


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _checked_path(config: Any) -> Path:
    """``config`` as the path of a file. Raises InvalidSettingError for what is none."""
    if not isinstance(config, str | PathLike):
        hint = "; AppConfig.model_validate makes one of a dict" if isinstance(config, dict) else ""
        raise InvalidSettingError(
            f"the configuration must be the path of a file or an AppConfig, not {type(config).__name__}{hint}"
        )
    return Path(config)


def _checked_prompt(prompt: str) -> str:
    """``prompt`` as it can be stored. Raises InvalidSettingError."""
    prompt = clean_text(prompt)
    if not prompt.strip():
        raise InvalidSettingError("the prompt is empty")
    if (size := len(prompt.encode())) > MAX_PROMPT_BYTES:
        raise InvalidSettingError(
            f"the prompt is {size:,} bytes long, and at most {MAX_PROMPT_BYTES:,} are taken; shorten it"
        )
    return prompt


def _checked(what: str, check: Callable[[Any], Any], value: Any) -> Any:
    """``value`` if the rule of the configuration lets it through. Raises InvalidSettingError naming ``what``."""
    try:
        return check(value)
    except ValueError as error:
        raise InvalidSettingError(f"{what} {shown(value)} {error}") from None
