"""``cleveragents run``: one prompt through the agents of a file."""

from __future__ import annotations

import math
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cleveragents.cli.exit_codes import ExitCode
from cleveragents.cli.kit.arguments import typed_text
from cleveragents.cli.kit.context_name import ContextName
from cleveragents.cli.kit.interruption import interrupt_on_termination
from cleveragents.cli.kit.output import say, warn
from cleveragents.cli.kit.prompt_command import PromptCommand
from cleveragents.cli.kit.session_id import SessionId
from cleveragents.cli.kit.spinner import QUIET, Spinner
from cleveragents.cli.run.printers import OUTPUT_FORMATS, printer
from cleveragents.cli.run.progress import usage_line
from cleveragents.errors import CleverAgentsError, ConfigNotFoundError

if TYPE_CHECKING:
    from cleveragents.config import AppConfig
    from cleveragents.contexts import ContextManager
    from cleveragents.sessions.service import SessionService


def _a_number(_ctx: click.Context, _param: click.Parameter, value: float) -> float:
    if math.isnan(value):
        raise click.BadParameter("nan is not a number of seconds")
    return value


@click.command(
    cls=PromptCommand,
    epilog="Example: git diff | cleveragents run reviewer.yaml 'Review this change.' --context reviews",
)
@click.argument("config", type=click.Path(path_type=Path))
@click.argument("prompt", required=False)
@click.option("--context", type=ContextName(), metavar="NAME", help="Continue this named context; made when new.")
@click.option("--session", type=SessionId(), metavar="ID", help="Go on with this session: an id, its start, or 'last'.")
@click.option(
    "--continue",
    "newest",
    is_flag=True,
    help="Go on with the newest session that was last run with this file, and say on stderr which.",
)
@click.option("--new-session", is_flag=True, help="Begin a session, and say its id on stderr.")
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
@click.option("--usage", is_flag=True, help="Say on stderr how many tokens were used, and what they cost.")
@click.option("--unsafe", is_flag=True, help="Run tool code as ordinary Python, outside the sandbox.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    callback=_a_number,
    default=30,
    show_default=True,
    metavar="S",
    help="Seconds to wait for another run on the same context or session.",
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Say on stderr what agents answer and call, where, and in which time.",
)
@click.option(
    "--batch",
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
    metavar="FILE",
    help="Run each line of FILE ('-': standard input): text, JSON text or an object with \"prompt\"; print JSON lines.",
)
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    metavar="N",
    help="With --batch: how many prompts may be at work at the same time.",
)
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE", help="With --batch: write results to FILE.")
@click.option("--resume", is_flag=True, help="With --output: go on after the results that FILE has already.")
@click.option(
    "--retry-failed",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="OLD",
    help="With --output: copy what was right in the results OLD, and run all else again.",
)
@click.option(
    "--rerun-changed",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="OLD",
    help="The same, but run everything again where the configuration has changed since OLD.",
)
def run(
    config: Path,
    prompt: str | None,
    context: str | None,
    session: str | None,
    newest: bool,
    new_session: bool,
    temperature: float | None,
    llm: str | None,
    output_format: str,
    no_stream: bool,
    usage: bool,
    unsafe: bool,
    wait: float,
    verbose: bool,
    batch: Path | None,
    concurrency: int,
    output: Path | None,
    resume: bool,
    retry_failed: Path | None,
    rerun_changed: Path | None,
) -> ExitCode:
    """Run the agents of the configuration file CONFIG on PROMPT.

    What is piped in follows the prompt; '-' as the prompt takes standard input alone.
    """
    from cleveragents.app import CleverAgentsApp

    interrupt_on_termination()
    _refuse_what_does_not_go_together(batch, output)
    _refuse_a_prompt_for_a_file(config, prompt)
    asked = "" if batch else _prompt(prompt)
    with ExitStack() as stack:
        sessions = stack.enter_context(_sessions()) if session is not None or newest or new_session else None
        app = CleverAgentsApp(config, temperature=temperature, unsafe=unsafe, llm=llm, sessions=sessions)
        if batch:
            from cleveragents.batch.manifest import Manifest
            from cleveragents.cli.run.batch import Output, run_batch
            from cleveragents.disk.files import file_digest, storage_errors

            place = None
            if output is not None:
                with storage_errors(config, "read"):
                    digest = file_digest(config)
                manifest = Manifest(config.name, digest, llm, temperature, unsafe)
                place = Output(output, manifest, resume, retry_failed or rerun_changed, rerun_changed is not None)
            return run_batch(app, batch, concurrency=concurrency, output=place, usage=usage, verbose=verbose)
        session_id = None if sessions is None else _session(sessions, session, app.config, new=new_session)
        conversation = _conversation(context)
        live = not no_stream and not verbose and sys.stdout.isatty()
        spinner = Spinner()
        shown = printer(
            output_format,
            {"actor": app.config.name, "context": context, "session": session_id},
            app.answering_agent if live else None,
            verbose=verbose,
            spinner=spinner,
        )
        try:
            with spinner:
                result = app.run_sync(
                    asked, context=conversation, session_id=session_id, listener=shown.event, wait=wait
                )
        except BaseException as error:
            if isinstance(error, CleverAgentsError) and error.result is not None:
                # The answer is there, only its place on disk is not.
                shown.result(error.result)
            else:
                shown.failed(error)
                if usage and (used := shown.used_before(error)) is not None:
                    say(usage_line(used))
            raise
    shown.result(result)
    if usage:
        say(usage_line(result.usage))
    for failure in result.errors:
        say(f"error: {failure}")
    return ExitCode.FAILED if result.errors else ExitCode.DONE


_CONVERSATIONS = {"context", "session", "newest", "new_session"}
_NOT_IN_A_BATCH = {"prompt", "output_format", "no_stream", "wait"} | _CONVERSATIONS
_WITH_OUTPUT_ONLY = {"resume", "retry_failed", "rerun_changed"}
_IN_A_BATCH_ONLY = {"concurrency", "output"} | _WITH_OUTPUT_ONLY
_ONE_OF = (_CONVERSATIONS, {"retry_failed", "rerun_changed"})


def _refuse_what_does_not_go_together(batch: Path | None, output: Path | None) -> None:
    ctx = click.get_current_context()
    hints = {
        parameter.name or "": parameter.get_error_hint(ctx)
        for parameter in ctx.command.params
        if ctx.get_parameter_source(parameter.name or "") is click.core.ParameterSource.COMMANDLINE
    }
    for name, hint in hints.items():
        if batch and name in _NOT_IN_A_BATCH:
            raise click.UsageError(f"{hint} does not go with --batch")
        if not batch and name in _IN_A_BATCH_ONLY:
            raise click.UsageError(f"{hint} needs --batch")
        if output is None and name in _WITH_OUTPUT_ONLY:
            raise click.UsageError(f"{hint} needs --output: the file that results go to")
    for group in _ONE_OF:
        given = [hint for name, hint in hints.items() if name in group]
        if len(given) > 1:
            raise click.UsageError(f"{given[1]} does not go with {given[0]}")


def _refuse_a_prompt_for_a_file(config: Path, prompt: str | None) -> None:
    if any(letter.isspace() for letter in config.name) and not config.exists():
        named = typed_text(str(config))
        swapped = prompt is not None and Path(prompt).is_file()
        hint = f"{prompt} is one, so swap the two" if swapped else "the configuration file comes first: run FILE PROMPT"
        raise ConfigNotFoundError([f"{named!r:.200} is no file; {hint}"])


def _prompt(argument: str | None) -> str:
    """The prompt: the argument, what is piped in, or both. Raises UsageError when there is neither."""
    parts = [] if argument is None or argument == "-" else [typed_text(argument)]
    if sys.stdin is not None and (argument == "-" or not sys.stdin.isatty()):
        try:
            parts.append(_piped_in(remark=bool(parts)).decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise click.UsageError("standard input is not UTF-8 text") from None
    prompt = "\n\n".join(part for part in parts if part and part.strip())
    if not prompt:
        raise click.UsageError("there is no prompt: give one as an argument, or pipe it in")
    return prompt


def _piped_in(*, remark: bool) -> bytes:
    """All of standard input; with a ``remark`` on stderr when it has not ended after a second."""
    from threading import Timer

    text = "waiting for the end of standard input, which follows the prompt; with '</dev/null' nothing does"
    timer = Timer(QUIET, say, [text])
    timer.daemon = True
    if remark:
        timer.start()
    try:
        return sys.stdin.buffer.read()
    finally:
        timer.cancel()


def _conversation(name: str | None) -> ContextManager | None:
    if name is None:
        return None
    from cleveragents.contexts import ContextManager, list_contexts

    others = list_contexts()
    context = ContextManager(name, on_damage=warn)
    if others and context.name not in others:
        from difflib import get_close_matches

        near = get_close_matches(context.name, others, n=1)
        say(f"context {context.name!r} is new{f'; did you mean {near[0]!r}?' if near else ''}")
    return context


def _sessions() -> SessionService:
    from cleveragents.sessions.open import open_sessions

    return open_sessions()


def _session(sessions: SessionService, reference: str | None, config: AppConfig, *, new: bool) -> str:
    """The id of the session to run on: the one referred to, a new one, or else the newest of the file."""
    if reference is not None:
        return sessions.find(reference)
    if new:
        session_id = sessions.create(config.name).session_id
        say(f"session: {session_id}")
        return session_id
    from cleveragents.cli.run.going_on import going_on_line
    from cleveragents.sessions.config_file import ConfigFile

    summary = sessions.newest(None if config.path is None else ConfigFile.at(config.path))
    say(going_on_line(summary))
    return summary.session_id
