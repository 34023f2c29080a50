"""``cleveragents session tell``: a run on a session, with the configuration file it was last run with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from cleveragents.cli.run import run
from cleveragents.cli.session_id import id_argument

_OF_RUN = {"temperature", "llm", "output_format", "no_stream", "usage", "unsafe", "wait", "verbose"}


@click.command(epilog="Example: cleveragents session tell last 'And by train?'")
@id_argument
@click.argument("prompt", required=False)
@click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Use this configuration file instead.")
@click.pass_context
def tell(ctx: click.Context, /, id_: str, prompt: str | None, config: Path | None, **settings: Any) -> int:
    """Go on with a session: run its agents on PROMPT, with the configuration file it was last run with.

    What is piped in follows the prompt; '-' as the prompt takes standard input alone.
    """
    from cleveragents.sessions.open import open_sessions

    with open_sessions() as sessions:
        session_id = sessions.find(id_)
        summary = sessions.summary(session_id)
    code: int = ctx.invoke(
        run, config=config or _last_config(session_id, summary.metadata), prompt=prompt, session=session_id, **settings
    )
    return code


tell.params += [parameter for parameter in run.params if parameter.name in _OF_RUN]


def _last_config(session_id: str, metadata: dict[str, Any]) -> Path:
    from cleveragents.conversation.reserved import CONFIG, reserved

    last = reserved(metadata, CONFIG)
    if not isinstance(last, str):
        raise click.UsageError(
            f"session {session_id} has not been run with a configuration file yet; give --config FILE"
        )
    if not Path(last).is_file():
        raise click.UsageError(f"{last}, which session {session_id} was last run with, is gone; give --config FILE")
    return Path(last)
