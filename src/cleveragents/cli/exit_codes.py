"""What the exit code of a command means, and which error leads to which."""

from __future__ import annotations

from enum import IntEnum

import click

from cleveragents import errors


class ExitCode(IntEnum):
    """How a command ended; docs/commands.md tells it to users."""

    DONE = 0
    FAILED = 1
    WRONG_USAGE = 2
    NOT_FOUND = 3
    AMBIGUOUS = 4
    DAMAGED = 5
    IN_USE = 6
    APPROVAL_REFUSED = 7
    INTERRUPTED = 130


# The first class that matches decides; every other error is FAILED.
EXIT_CODES: tuple[tuple[type[BaseException], ExitCode], ...] = (
    (click.UsageError, ExitCode.WRONG_USAGE),
    (errors.ConfigNotFoundError, ExitCode.NOT_FOUND),
    (errors.MissingFileError, ExitCode.NOT_FOUND),
    (errors.ConfigError, ExitCode.WRONG_USAGE),
    (errors.InvalidInputError, ExitCode.WRONG_USAGE),
    (errors.ContextNotFoundError, ExitCode.NOT_FOUND),
    (errors.SessionNotFoundError, ExitCode.NOT_FOUND),
    (errors.SessionAmbiguousError, ExitCode.AMBIGUOUS),
    (errors.ContextDamagedError, ExitCode.DAMAGED),
    (errors.ContextImportError, ExitCode.DAMAGED),
    (errors.SessionDamagedError, ExitCode.DAMAGED),
    (errors.SessionImportError, ExitCode.DAMAGED),
    (errors.BatchDamagedError, ExitCode.DAMAGED),
    (errors.ContextBusyError, ExitCode.IN_USE),
    (errors.SessionBusyError, ExitCode.IN_USE),
    (errors.SessionConflictError, ExitCode.IN_USE),
    (errors.BatchBusyError, ExitCode.IN_USE),
    (click.Abort, ExitCode.INTERRUPTED),
    (KeyboardInterrupt, ExitCode.INTERRUPTED),
)


def exit_code(error: BaseException) -> ExitCode:
    """The exit code that stands for ``error``."""
    return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), ExitCode.FAILED)
