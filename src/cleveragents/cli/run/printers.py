"""How a run is shown: the answer on stdout as text or JSON, what happens on the way on stderr."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from cleveragents.cli.kit.output import discard_stdout, say, show, show_json, terminal_json
from cleveragents.cli.kit.spinner import Spinner
from cleveragents.cli.run.live_text import LiveText
from cleveragents.cli.run.progress import Reading, progress_line, tool_line
from cleveragents.conversation.content import content_text

if TYPE_CHECKING:
    from cleveragents.agents.events import AgentEvent
    from cleveragents.conversation.usage import Usage
    from cleveragents.streams.router import RunResult

OUTPUT_FORMATS = ("text", "json", "stream-json")

Start = dict[str, str | None]
"""The actor, and the context or session of a run, as JSON outputs show them."""


class Remarks:
    """What is said on stderr during a run: what tools print and, when ``verbose``, what happens between agents.

    Calls of tools are told when ``verbose``, and on a terminal. What begins with ``before`` is one of several runs, and
    tells less there. The ``spinner`` makes room for it.
    """

    def __init__(self, *, verbose: bool, before: str = "", spinner: Spinner | None = None) -> None:
        self._verbose = verbose
        self._spinner = spinner or Spinner()
        self._before = before
        self._shows_calls = verbose or (not before and sys.stderr.isatty())
        self._reading = Reading()
        self._used: Usage | None = None

    def used_before(self, error: BaseException) -> Usage | None:
        """What llms had used when a run ended with ``error``, a Ctrl-C as well; None where none was asked."""
        usage: Usage | None = getattr(error, "usage", None)
        return usage or self._used

    def event(self, event: AgentEvent) -> None:
        """Say what there is to say now."""
        from cleveragents.agents.events import (
            AnswerCutOff,
            LLMUsed,
            PromptRead,
            PromptShortened,
            ToolPrinted,
            TurnAwaited,
        )

        if isinstance(event, PromptRead):
            if sys.stderr.isatty() and (line := self._reading.line(event, time.monotonic())):
                self._say(self._before + line)
        elif isinstance(event, LLMUsed):
            self._used = event.usage if self._used is None else self._used + event.usage
        elif isinstance(event, TurnAwaited):
            self._say(f"waiting for another run on {event.place}")
        elif isinstance(event, AnswerCutOff):
            self._say(f"{self._before}warning: agent {event.agent}: its answer was cut off: {event.told}")
        elif isinstance(event, PromptShortened):
            size = f"{event.characters:,} characters"
            self._say(f"{self._before}warning: agent {event.agent}: its llm cannot read a prompt of {size} whole")
        elif isinstance(event, ToolPrinted):
            self._say(event.text.removesuffix("\n"))
        elif line := self._line(event):
            self._say(self._before + line)

    def _line(self, event: AgentEvent) -> str | None:
        line = tool_line(event) if self._shows_calls else None
        return line or (progress_line(event) if self._verbose else None)

    def _say(self, line: str) -> None:
        self._spinner.pause()
        say(line)


class TextPrinter(Remarks):
    """The answer alone on stdout, that of ``live_agent`` as it arrives; all else on stderr."""

    def __init__(self, live_agent: str | None, *, verbose: bool, spinner: Spinner) -> None:
        super().__init__(verbose=verbose, spinner=spinner)
        self._live_agent = live_agent
        self._live_text: LiveText | None = None
        self._in_a_line = False
        self._after_a_remark = False

    def event(self, event: AgentEvent) -> None:
        """Show what can be shown now."""
        from cleveragents.agents.events import TextDelta

        super().event(event)
        if isinstance(event, TextDelta) and event.agent == self._live_agent:
            self._spinner.stop()
            self._live_text = self._live_text or LiveText()
            # A paragraph is set apart by the remark before it.
            self._show_live(self._live_text.add(event.text.lstrip("\n") if self._after_a_remark else event.text))

    def _say(self, line: str) -> None:
        """Say it on a line of its own: the answer may be in the middle of one."""
        if self._live_text is not None and sys.stderr.isatty():
            self._show_live(self._live_text.end())
            self._show_live("\n" if self._in_a_line else "")
            self._after_a_remark = True
        super()._say(line)

    def _show_live(self, text: str) -> None:
        print(text, end="", flush=True)
        if text:
            self._in_a_line, self._after_a_remark = not text.endswith("\n"), False

    def result(self, result: RunResult) -> None:
        """Show every output, unless it has been seen already."""
        if self._live_text is not None:
            print(self._live_text.end(), end="" if self._after_a_remark else "\n", flush=True)
            return
        for output in result.outputs:
            show(content_text(output))

    def failed(self, _error: BaseException) -> None:
        """Leave the error message a line of its own."""
        if self._live_text is not None:
            print(self._live_text.end(), flush=True)


class JSONPrinter(Remarks):
    """One JSON document on stdout."""

    def __init__(self, start: Start, *, verbose: bool, spinner: Spinner) -> None:
        super().__init__(verbose=verbose, spinner=spinner)
        self._start = start

    def document(self, result: RunResult) -> dict[str, Any]:
        """The result of a run as JSON data."""
        return {
            **self._start,
            "output": result.output,
            "outputs": result.outputs,
            "errors": [str(error) for error in result.errors],
            "cut_off": result.cut_off,
            "global_context": result.context,
            "usage": usage_facts(result.usage),
        }

    def result(self, result: RunResult) -> None:
        """Show the document."""
        show_json(self.document(result))

    def failed(self, error: BaseException) -> None:
        """Nothing on stdout: the error goes to stderr."""


class StreamJSONPrinter(JSONPrinter):
    """One JSON object a line, as things happen; docs/commands.md describes each kind."""

    def __init__(self, start: Start, *, verbose: bool, spinner: Spinner) -> None:
        super().__init__(start, verbose=verbose, spinner=spinner)
        self._reader_gone = False
        self._emit("start", **self._start)

    def event(self, event: AgentEvent) -> None:
        """One line for the event."""
        from cleveragents.agents.events import AnswerCutOff, TextDelta, ToolCalled, ToolReturned

        super().event(event)
        if isinstance(event, TextDelta):
            self._spinner.stop()
            self._emit("text", agent=event.agent, text=event.text)
        elif isinstance(event, ToolCalled):
            self._emit("tool_call", agent=event.agent, tool=event.tool, id=event.call_id, arguments=event.arguments)
        elif isinstance(event, AnswerCutOff):
            self._emit("cut_off", agent=event.agent, reason=event.reason)
        elif isinstance(event, ToolReturned):
            self._emit(
                "tool_result",
                agent=event.agent,
                tool=event.tool,
                id=event.call_id,
                content=event.content,
                failed=event.failed,
            )

    def result(self, result: RunResult) -> None:
        """The last line: the same document as ``json`` prints."""
        for error in result.errors:
            self._emit("error", message=str(error))
        self._emit("result", **self.document(result))

    def failed(self, error: BaseException) -> None:
        """The last line of a run that failed."""
        usage = self.used_before(error)
        facts = {} if usage is None else {"usage": usage_facts(usage)}
        self._emit("error", message=str(error) or "interrupted", **facts)

    def _emit(self, kind: str, **values: Any) -> None:
        """Print one line. A reader that has gone must not end the turn: it goes on and is saved."""
        if self._reader_gone:
            return
        try:
            print(terminal_json({"type": kind, **values}), flush=True)
        except BrokenPipeError:
            self._reader_gone = True
            discard_stdout()


def usage_facts(usage: Usage) -> dict[str, Any]:
    """``usage`` as JSON data; ``cost`` is in dollars, None when that of any part is unknown."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "requests": usage.requests,
        "cost": None if usage.cost is None else float(usage.cost),
    }


def printer(
    output_format: str, start: Start, live_agent: str | None, *, verbose: bool, spinner: Spinner
) -> TextPrinter | JSONPrinter:
    """What shows a run in one of OUTPUT_FORMATS; text of ``live_agent`` alone is shown as it arrives."""
    if output_format == "text":
        return TextPrinter(live_agent, verbose=verbose, spinner=spinner)
    kind = StreamJSONPrinter if output_format == "stream-json" else JSONPrinter
    return kind(start, verbose=verbose, spinner=spinner)
