"""The entry point: which command there is, how an error becomes a line on stderr and an exit code."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, NoReturn

import click

from cleveragents import __version__
from cleveragents.cli.exit_codes import ExitCode, exit_code
from cleveragents.cli.kit.interruption import ignore_interruption
from cleveragents.cli.kit.lazy_group import LazyGroup
from cleveragents.cli.kit.output import discard_stdout, open_closed_streams, say
from cleveragents.errors import CleverAgentsError

if TYPE_CHECKING:
    from types import TracebackType

COMMANDS = {
    "run": "cleveragents.cli.run.command:run",
    "context": "cleveragents.cli.context:context",
    "session": "cleveragents.cli.session.group:session",
    "config": "cleveragents.cli.config:config",
    "db": "cleveragents.cli.db:db",
}


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
    sys.excepthook = _say_traceback
    sys.exit(_guarded(sys.argv[1:]))


def _say_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Python's own way to tell would hand what stands in an error's text to the terminal as it is."""
    import traceback

    say("".join(traceback.format_exception(kind, error, trace)).rstrip("\n"))


def _guarded(arguments: list[str]) -> int:  # noqa: PLR0911 - one for each way in which a command ends
    """The exit code of the command; whatever went wrong has been said on stderr in one line."""
    debug = "--debug" in arguments[:1]
    try:
        code = cli.main(arguments, prog_name="cleveragents", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return exit_code(error)
    except click.ClickException as error:
        hint = f" (see '{error.ctx.command_path} --help')" if isinstance(error, click.UsageError) and error.ctx else ""
        say(f"error: {error.format_message()}{hint}")
        return exit_code(error)
    except (KeyboardInterrupt, click.Abort) as error:
        ignore_interruption()
        say("interrupted")
        return exit_code(error)
    except BrokenPipeError:
        discard_stdout()
        return ExitCode.DONE
    except OSError as error:
        if error.filename is not None:
            raise
        # Every file has been named by now: this is standard output.
        discard_stdout()
        say(f"error: cannot write to standard output: {error.strerror or error}")
        return ExitCode.FAILED
    except CleverAgentsError as error:
        if debug:
            raise
        say("\n".join(f"error: {line}" for line in str(error).splitlines()))
        return exit_code(error)
    return code if isinstance(code, int) else ExitCode.DONE
