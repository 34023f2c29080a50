"""Every error the project raises on purpose, in one tree, all importable from ``cleveragents`` as well.

The text of each is one line that names the thing and says what to do; the command line prints it as it is.
Errors carry facts as attributes, and survive pickling. What is refused by a rule is a ``ValueError`` as well.
"""

from __future__ import annotations

from typing import Any


class CleverAgentsError(Exception):
    """Base of all errors raised on purpose.

    ``result`` is what a run gave (a RunResult) when all went well but for keeping its answer. ``usage`` is what llms
    had used (a Usage) when a run, or an agent, failed.
    """

    result: Any = None
    usage: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with all its facts, so that a process pool hands it on whatever its constructor takes."""
        return _restored, (type(self), self.args, self.__dict__)


class InvalidInputError(CleverAgentsError, ValueError):
    """Base of what the domain refuses: a name, an id, a value, a setting."""


class InvalidNameError(InvalidInputError):
    """A context name that may not become a folder's name."""


class InvalidValueError(InvalidInputError):
    """A value that cannot be stored as JSON; ``path`` says where in the value it stands."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.reason = reason
        self.path = path


class InvalidSettingError(InvalidInputError):
    """A setting of a run that is out of range, such as a temperature of 3."""


class ConfigError(CleverAgentsError):
    """A configuration file that cannot be used; ``faults`` holds one line for each fault in it."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


class ConfigNotFoundError(ConfigError):
    """There is no such configuration file."""


class StorageError(CleverAgentsError):
    """The disk refused: no space, no permission, not a folder. The text names the path and the reason."""


class MissingFileError(StorageError):
    """A file that was to be read is not there."""


# --- named contexts -----------------------------------------------------------------------------------


class ContextError(CleverAgentsError):
    """Base of errors about named contexts."""


class ContextNotFoundError(ContextError):
    """No context of this name, or it has been deleted meanwhile."""


class ContextExistsError(ContextError):
    """The name is taken, or differs only by case from the one that is: ``taken``."""

    def __init__(self, message: str, taken: str = "") -> None:
        super().__init__(message)
        self.taken = taken


class ContextDamagedError(ContextError):
    """A file of the context in which nothing can be read; nothing was overwritten."""


class ContextImportError(ContextError):
    """An export of a context that cannot be imported; nothing was written."""


class ContextBusyError(ContextError):
    """Another process holds the context and did not let go in time."""


# --- agents and runs ----------------------------------------------------------------------------------


class AgentError(CleverAgentsError):
    """An agent failed on a message; ``agent`` is its name.

    ``temporary`` tells that the same again may succeed: too many requests, an unreachable host, a time-out. A
    router adds ``route``, the name of the route the agent stood in, and ``message``, what it failed on.
    """

    def __init__(self, agent: str, reason: str, *, temporary: bool = False) -> None:
        super().__init__(f"agent {agent}: {reason}")
        self.agent = agent
        self.reason = reason
        self.temporary = temporary
        self.route = ""
        self.message: Any = None


class LLMError(AgentError):
    """An llm could not be reached, refused, or gave an answer that cannot be used.

    ``retry_after`` is after how many seconds its server wants to be asked again; None where it does not say.
    """

    retry_after: float | None = None


class ToolError(AgentError):
    """Tool code failed, or was stopped at a limit; it changed nothing."""


class CodeError(CleverAgentsError):
    """Code or an expression failed, was stopped at a limit, or left something that is not JSON.

    Whoever ran it says on: a tool as ToolError, a stream as StreamError.
    """


class StreamError(CleverAgentsError):
    """A message cannot go on in ``route``: the hop limit was reached, or an expression failed.

    ``agent`` is always "", so that errors of a run read alike; ``message`` is what was on its way, ``temporary``
    tells that the same again may succeed.
    """

    def __init__(self, route: str, reason: str, *, temporary: bool = False) -> None:
        super().__init__(f"route {route}: {reason}" if route else reason)
        self.agent = ""
        self.route = route
        self.reason = reason
        self.temporary = temporary
        self.message: Any = None


class NoOutputError(CleverAgentsError):
    """A run ended without any output."""


# --- batches ------------------------------------------------------------------------------------------


class BatchError(CleverAgentsError):
    """Base of errors about a batch and the file of its results."""


class BatchResultsError(BatchError, InvalidInputError):
    """A file that may not take these results: it is there already, or has results that the input cannot have."""


class BatchDamagedError(BatchError):
    """A file that holds something else than results of a batch; nothing was changed."""


class BatchBusyError(BatchError):
    """Another run is writing the file of the results."""


# --- sessions -----------------------------------------------------------------------------------------


class SessionValidationError(InvalidInputError):
    """Data that the session model refuses."""


class InvalidIdError(SessionValidationError):
    """Text that is not a ULID; distinct from an id of which there is no record."""


class SessionServiceError(CleverAgentsError):
    """Base of errors of the session store."""


class SessionNotFoundError(SessionServiceError):
    """No session with this id."""


class SessionAmbiguousError(SessionServiceError):
    """The beginning of an id that several sessions have."""


class SessionExportError(SessionServiceError):
    """The session cannot be exported."""


class SessionImportError(SessionServiceError):
    """The document cannot be imported; nothing was written."""


class SessionChecksumError(SessionImportError):
    """The document is not what was exported: its checksum differs."""


class SessionConflictError(SessionServiceError):
    """Another process wrote to the session first."""


class SessionBusyError(SessionServiceError):
    """The session or its database is in use and was not let go in time."""


class SessionStorageError(SessionServiceError, StorageError):
    """The database cannot be opened, reached or written. The text names it and the reason."""


class SessionDamagedError(SessionServiceError):
    """The database is damaged; it was left as it is."""


class SessionSchemaError(SessionServiceError):
    """The database was made by a newer version, or by another program."""


def _restored(kind: type[CleverAgentsError], arguments: tuple[Any, ...], facts: dict[str, Any]) -> CleverAgentsError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(facts)
    return error
