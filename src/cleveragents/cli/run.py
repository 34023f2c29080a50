"""``cleveragents run``: one prompt through the agents of a file."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cleveragents.cli.context_name import ContextName
from cleveragents.cli.output import discard_stdout, say, show, show_json, typed_text
from cleveragents.domain.history import content_text
from cleveragents.domain.values import dump_json, terminal_text

if TYPE_CHECKING:
    from cleveragents.agents.base import AgentEvent
    from cleveragents.app import CleverAgentsApp
    from cleveragents.contexts import ContextManager
    from cleveragents.streams.router import RunResult

OUTPUT_FORMATS = ("text", "json", "stream-json")


@click.command(
    epilog="Example: git diff | cleveragents run reviewer.yaml 'Review this change.' --context reviews",
)
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("prompt", required=False)
@click.option("--context", type=ContextName(), metavar="NAME", help="Continue this named context; made when new.")
@click.option("--temperature", type=float, help="From 0 to 2, for every llm agent in this run; never saved.")
@click.option("--llm", metavar="NAME", help="Use this llm for every llm agent: provider:model, local or gguf:/path.")
@click.option(
    "--output-format",
    type=click.Choice(OUTPUT_FORMATS),
    default="text",
    show_default=True,
    help="Text; one JSON document; or one JSON object a line, as things happen.",
)
@click.option("--no-stream", is_flag=True, help="On a terminal, show the answer when it is whole.")
@click.option("--usage", is_flag=True, help="Say on stderr how many tokens were used.")
@click.option("--unsafe", is_flag=True, help="Run tool code as ordinary Python, outside the sandbox.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=30,
    show_default=True,
    metavar="S",
    help="Seconds to wait for another run on the same context.",
)
def run(
    config: Path,
    prompt: str | None,
    context: str | None,
    temperature: float | None,
    llm: str | None,
    output_format: str,
    no_stream: bool,
    usage: bool,
    unsafe: bool,
    wait: float,
) -> int:
    """Run the agents of CONFIG on PROMPT.

    What is piped in follows the prompt; '-' as the prompt takes standard input alone.
    """
    from cleveragents.app import CleverAgentsApp

    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            # Whoever ends the process, what came of the answer is kept.
            signal.signal(getattr(signal, name), lambda *_: signal.raise_signal(signal.SIGINT))
    asked = _prompt(prompt)
    app = CleverAgentsApp(config, temperature=temperature, unsafe=unsafe, llm=llm)
    conversation = _conversation(context)
    printer = _PRINTERS[output_format](app, context, live=not no_stream and sys.stdout.isatty())
    try:
        result = app.run_sync(asked, context=conversation, listener=printer.event, wait=wait)
    except BaseException as error:
        printer.failed(error)
        raise
    printer.result(result)
    if usage:
        say(f"usage: {result.usage.input_tokens} tokens in, {result.usage.output_tokens} out")
    for failure in result.errors:
        say(f"error: {failure}")
    return 1 if result.errors else 0


def _prompt(argument: str | None) -> str:
    """The prompt: the argument, what is piped in, or both. Raises UsageError when there is neither."""
    parts = [] if argument is None or argument == "-" else [typed_text(argument)]
    if sys.stdin is not None and (argument == "-" or not sys.stdin.isatty()):
        try:
            parts.append(sys.stdin.buffer.read().decode("utf-8"))
        except UnicodeDecodeError:
            raise click.UsageError("standard input is not UTF-8 text") from None
    prompt = "\n\n".join(part for part in parts if part and part.strip())
    if not prompt:
        raise click.UsageError("there is no prompt: give one as an argument, or pipe it in")
    return prompt


def _conversation(name: str | None) -> ContextManager | None:
    if name is None:
        return None
    from cleveragents.contexts import ContextManager

    return ContextManager(name)


class _TextPrinter:
    """The answer alone on stdout, as it arrives when ``live``; what tools print on stderr."""

    def __init__(self, app: CleverAgentsApp, context: str | None, *, live: bool) -> None:  # noqa: ARG002 - one form
        self._live_agent = app.answering_agent if live else None
        self._line_open = False

    def event(self, event: AgentEvent) -> None:
        """Show what can be shown now."""
        from cleveragents.agents.base import TextDelta, ToolPrinted

        if isinstance(event, TextDelta) and event.agent == self._live_agent:
            print(terminal_text(event.text), end="", flush=True)
            self._line_open = True
        elif isinstance(event, ToolPrinted):
            say(event.text.removesuffix("\n"))

    def result(self, result: RunResult) -> None:
        """Show every output, unless it has been seen already."""
        if self._line_open:
            print()
            return
        for output in result.outputs:
            show(content_text(output))

    def failed(self, _error: BaseException) -> None:
        """Leave the error message a line of its own."""
        if self._line_open:
            print(flush=True)


class _JSONPrinter:
    """One JSON document on stdout."""

    def __init__(self, app: CleverAgentsApp, context: str | None, *, live: bool) -> None:  # noqa: ARG002 - one form
        self._actor, self._context = app.config.name, context

    def event(self, event: AgentEvent) -> None:
        """What tools print goes to stderr."""
        from cleveragents.agents.base import ToolPrinted

        if isinstance(event, ToolPrinted):
            say(event.text.removesuffix("\n"))

    def document(self, result: RunResult) -> dict[str, Any]:
        """The result of a run as JSON data."""
        return {
            "actor": self._actor,
            "context": self._context,
            "output": result.output,
            "outputs": result.outputs,
            "errors": [str(error) for error in result.errors],
            "global_context": result.context,
            "usage": {
                "input_tokens": result.usage.input_tokens,
                "output_tokens": result.usage.output_tokens,
                "cached_tokens": result.usage.cached_tokens,
                "requests": result.usage.requests,
            },
        }

    def result(self, result: RunResult) -> None:
        """Show the document."""
        show_json(self.document(result))

    def failed(self, error: BaseException) -> None:
        """Nothing on stdout: the error goes to stderr."""


class _StreamJSONPrinter(_JSONPrinter):
    """One JSON object a line, as things happen; docs/commands.md describes each kind."""

    def __init__(self, app: CleverAgentsApp, context: str | None, *, live: bool) -> None:
        super().__init__(app, context, live=live)
        self._reader_gone = False
        self._emit("start", actor=self._actor, context=self._context)

    def event(self, event: AgentEvent) -> None:
        """One line for the event."""
        from cleveragents.agents.base import TextDelta, ToolCalled, ToolReturned

        super().event(event)
        if isinstance(event, TextDelta):
            self._emit("text", agent=event.agent, text=event.text)
        elif isinstance(event, ToolCalled):
            self._emit("tool_call", agent=event.agent, tool=event.tool, id=event.call_id, arguments=event.arguments)
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
        self._emit("error", message=str(error) or "interrupted")

    def _emit(self, kind: str, **values: Any) -> None:
        """Print one line. A reader that has gone must not end the turn: it goes on and is saved."""
        if self._reader_gone:
            return
        try:
            print(dump_json({"type": kind, **values}), flush=True)
        except BrokenPipeError:
            self._reader_gone = True
            discard_stdout()


_PRINTERS: dict[str, type[_TextPrinter | _JSONPrinter]] = {
    "text": _TextPrinter,
    "json": _JSONPrinter,
    "stream-json": _StreamJSONPrinter,
}
