"""The entry point: which command there is, how an error becomes a line on stderr and an exit code."""

from __future__ import annotations

import sys
import warnings
from typing import NoReturn

import click

from cleveragents import __version__, errors
from cleveragents.cli.interruption import ignore_interruption
from cleveragents.cli.lazy_group import LazyGroup
from cleveragents.cli.output import discard_stdout, open_closed_streams, say

# name: (module, attribute, one line of help). A command's module is imported when the command is used.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "run": ("cleveragents.cli.run", "run", "Run the agents of a configuration file on a prompt."),
    "context": (
        "cleveragents.cli.context",
        "context",
        "Named contexts: list, show, clear, delete, export, import.",
    ),
    "session": (
        "cleveragents.cli.session",
        "session",
        "Sessions, the conversations in the database: list, show, tell, export, import.",
    ),
    "config": ("cleveragents.cli.config", "config", "Check a configuration file; print its JSON Schema."),
    "db": ("cleveragents.cli.db", "db", "The database of sessions: status, upgrade, backup, path."),
}

# The first class that matches decides; everything else the project raises on purpose is 1.
EXIT_CODES: tuple[tuple[type[Exception], int], ...] = (
    (errors.ConfigError, 2),
    (errors.InvalidInputError, 2),
    (errors.ContextNotFoundError, 3),
    (errors.SessionNotFoundError, 3),
    (errors.ContextDamagedError, 5),
    (errors.ContextImportError, 5),
    (errors.SessionAmbiguousError, 4),
    (errors.SessionDamagedError, 5),
    (errors.SessionImportError, 5),
    (errors.ContextBusyError, 6),
    (errors.SessionBusyError, 6),
    (errors.SessionConflictError, 6),
)
FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130


@click.group(
    cls=LazyGroup,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: cleveragents run assistant.yaml 'What is a ULID?' --context notes",
)
@click.version_option(__version__, prog_name="cleveragents")
@click.option("--debug", is_flag=True, help="Show a traceback when something fails.")
def cli(debug: bool) -> None:
    """Describe agents in a YAML file, run them, and never lose a conversation."""


def main() -> NoReturn:
    """Run the command line of this process and exit with its code."""
    if not sys.warnoptions:
        # What libraries remark to programmers is nothing to the person at the terminal.
        warnings.simplefilter("ignore")
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # An answer that a console cannot show is shown with replacements; it is not a failure.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    sys.exit(_guarded(sys.argv[1:]))


def _guarded(arguments: list[str]) -> int:  # noqa: PLR0911 - one for each way in which a command ends
    """The exit code of the command; whatever went wrong has been said on stderr in one line."""
    debug = "--debug" in arguments[:1]
    try:
        code = cli.main(arguments, prog_name="cleveragents", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return WRONG_USAGE
    except click.ClickException as error:
        hint = f" (see '{error.ctx.command_path} --help')" if isinstance(error, click.UsageError) and error.ctx else ""
        say(f"error: {error.format_message()}{hint}")
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        ignore_interruption()
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        discard_stdout()
        return 0
    except OSError as error:
        if error.filename is not None:
            raise
        # Every file has been named by now: this is standard output.
        discard_stdout()
        say(f"error: cannot write to standard output: {error.strerror or error}")
        return FAILED
    except errors.CleverAgentsError as error:
        if debug:
            raise
        say("\n".join(f"error: {line}" for line in str(error).splitlines()))
        return exit_code(error)
    return code if isinstance(code, int) else 0


def exit_code(error: Exception) -> int:
    """The exit code that stands for ``error``."""
    return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), FAILED)
