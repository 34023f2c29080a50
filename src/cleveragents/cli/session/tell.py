"""``cleveragents session tell``: a run on a session, with the configuration file it was last run with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cleveragents.cli.exit_codes import ExitCode
from cleveragents.cli.kit.prompt_command import PromptCommand
from cleveragents.cli.kit.session_id import id_argument
from cleveragents.cli.kit.sessions import pass_sessions
from cleveragents.cli.run.command import run
from cleveragents.errors import ConfigNotFoundError

if TYPE_CHECKING:
    from cleveragents.sessions.service import SessionService

_OF_RUN = {"temperature", "llm", "output_format", "no_stream", "usage", "unsafe", "wait", "verbose"}


@click.command(cls=PromptCommand, epilog="Example: cleveragents session tell last 'And by train?'")
@id_argument
@click.argument("prompt", required=False)
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Use this configuration file instead.")
@click.pass_context
def tell(ctx: click.Context, /, id_: str, prompt: str | None, config: Path | None, **settings: Any) -> ExitCode:
    """Go on with a session: run its agents on PROMPT.

    They are those of the configuration file it was last run with here, unless --config names another; an imported
    session needs --config at first, and 'last' passes over it. What is piped in follows the prompt; '-' as the prompt
    takes standard input alone.
    """
    session_id, last = _found(id_)
    code: ExitCode = ctx.invoke(
        run, config=config or _config(session_id, last), prompt=prompt, session=session_id, **settings
    )
    return code


tell.params += [parameter for parameter in run.params if parameter.name in _OF_RUN]


@pass_sessions
def _found(sessions: SessionService, id_: str) -> tuple[str, Any]:
    """The id of the session, and the path of the configuration file it was last run with, if it was."""
    from cleveragents.conversation.reserved import CONFIG, reserved
    from cleveragents.sessions.service import LAST

    summary = sessions.newest() if id_ == LAST else sessions.summary(sessions.find(id_))
    return summary.session_id, reserved(summary.metadata, CONFIG)


def _config(session_id: str, last: Any) -> Path:
    # A run stores the whole path; what else stands there was not stored by one.
    if not isinstance(last, str) or not Path(last).is_absolute():
        raise click.UsageError(
            f"session {session_id} has not been run with a configuration file yet; give --config FILE"
        )
    if not Path(last).is_file():
        raise ConfigNotFoundError(
            [f"{last}, which session {session_id} was last run with, is gone; give --config FILE"]
        )
    return Path(last)
