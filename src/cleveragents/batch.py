"""Many prompts through one network: what becomes of each, in the order of the input, and the file it is kept in."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleveragents.agents.events import Listener
from cleveragents.conversation.usage import Usage
from cleveragents.disk.files import storage_errors, write_all
from cleveragents.errors import (
    BatchBusyError,
    BatchDamagedError,
    BatchResultsError,
    CleverAgentsError,
    InvalidValueError,
)
from cleveragents.values.json import dump_json, load_json
from cleveragents.values.text import clean_text

if TYPE_CHECKING:
    from cleveragents.app import CleverAgentsApp

AHEAD = 4
"""Results for each one that may be worked on at the same time that may wait for the one before them in order."""

_EXPECTED = 'expected a JSON text, or an object with "prompt"'


# --- prompts --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prompt:
    """One line of the input, ``line`` counted from 1; ``fault`` tells why there is no prompt in it."""

    line: int
    text: str = ""
    fault: str = ""


def read_prompts(data: bytes) -> list[Prompt]:
    """The prompt of every line of ``data`` that is not blank."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return [_prompt(number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _prompt(number: int, line: bytes) -> Prompt:
    try:
        value = load_json(line.strip())
    except (InvalidValueError, UnicodeDecodeError):
        return Prompt(number, fault=f"not JSON; {_EXPECTED}")
    text = value.get("prompt") if isinstance(value, dict) else value
    if not isinstance(text, str):
        return Prompt(number, fault=f"no prompt; {_EXPECTED}")
    return Prompt(number, clean_text(text)) if text.strip() else Prompt(number, fault="the prompt is empty")


# --- results --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Result:
    """What became of the prompt in ``line``: its outputs, and what failed, which may be there both.

    ``usage`` is None when no run gave anything: the line holds no prompt, or the run gave nothing but an error.
    """

    line: int
    outputs: list[Any] = field(default_factory=list)
    error: str | None = None
    usage: Usage | None = None

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON data; ``cost`` is in dollars, None when it is not known."""
        return {
            "line": self.line,
            "output": self.outputs[-1] if self.outputs else None,
            "outputs": self.outputs,
            "error": self.error,
            "usage": None if self.usage is None else _facts(self.usage),
        }


def _facts(usage: Usage) -> dict[str, Any]:
    cost = None if usage.cost is None else float(usage.cost)
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "cost": cost}


async def results(
    app: CleverAgentsApp, prompts: Sequence[Prompt], concurrency: int, listener: Callable[[int], Listener]
) -> AsyncGenerator[Result, None]:
    """What becomes of each of ``prompts``, in their order, with at most ``concurrency`` at work at the same time.

    ``listener`` makes the listener for a line. One that fails is a result as well.
    """
    room = asyncio.Semaphore(concurrency)

    async def result(prompt: Prompt) -> Result:
        async with room:
            return await _result(app, prompt, listener(prompt.line))

    waiting: deque[asyncio.Task[Result]] = deque()
    try:
        for prompt in prompts:
            waiting.append(asyncio.create_task(result(prompt)))
            if len(waiting) >= AHEAD * concurrency:
                yield await waiting[0]
                waiting.popleft()
        while waiting:
            yield await waiting[0]
            waiting.popleft()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def _result(app: CleverAgentsApp, prompt: Prompt, listener: Listener) -> Result:
    if prompt.fault:
        return Result(prompt.line, error=prompt.fault)
    try:
        run = await app.run(prompt.text, listener=listener)
    except CleverAgentsError as error:
        return Result(prompt.line, error=str(error))
    return Result(prompt.line, run.outputs, "; ".join(map(str, run.errors)) or None, run.usage)


# --- results on disk ------------------------------------------------------------------------------------


class ResultFile:
    """Results in a file that is open for this run alone, one JSON object a line.

    ``last`` is the line of the last one that was there, 0 without any; ``failed`` is how many of those have an error.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path
        self.last = 0
        self.failed = 0

    def remaining(self, prompts: Sequence[Prompt]) -> list[Prompt]:
        """Those of ``prompts`` that have no result yet. Raises BatchResultsError when there are results of others."""
        if self.last > max((prompt.line for prompt in prompts), default=0):
            raise BatchResultsError(f"{self._path} has results of {self.last} lines, which the input does not have")
        return [prompt for prompt in prompts if prompt.line > self.last]

    def append(self, result: Result) -> None:
        """Add a result at the end; it is on disk when this returns."""
        with storage_errors(self._path):
            write_all(self._descriptor, dump_json(result.as_dict()).encode() + b"\n")
            os.fsync(self._descriptor)

    def go_on(self) -> None:
        """Find the end of the results that are whole, and cut off what a crash left half-written after it."""
        with storage_errors(self._path, "read"), open(self._descriptor, "rb", closefd=False) as file:
            data = file.read()
        end = data.rfind(b"\n") + 1
        for number, line in enumerate(data[:end].split(b"\n")[:-1], 1):
            self._count(number, line)
        with storage_errors(self._path):
            os.ftruncate(self._descriptor, end)
            os.lseek(self._descriptor, end, os.SEEK_SET)

    def _count(self, number: int, line: bytes) -> None:
        try:
            result = load_json(line)
            follows = result["line"] > self.last
            failed = result["error"] is not None
        except (InvalidValueError, UnicodeDecodeError, TypeError, LookupError):
            follows = False
        if not follows:
            raise BatchDamagedError(
                f"line {number} of {self._path} is not the next result of a batch; nothing was changed"
            )
        self.last = result["line"]
        self.failed += failed


@contextmanager
def result_file(path: Path, *, resume: bool) -> Iterator[ResultFile]:
    """The file ``path``, new or, to ``resume``, with the results that are in it; others cannot write it meanwhile.

    Raises BatchResultsError when it is there and shall not be resumed, BatchBusyError when another run is writing it,
    and BatchDamagedError when something else is in it.
    """
    from cleveragents.disk.locks import acquire, release

    with storage_errors(path):
        # The lock is on the file itself, so that nothing is left beside it.
        descriptor = acquire(path.absolute(), 0, follow=True)
    if descriptor is None:
        raise BatchBusyError(f"another run is writing {path}; wait for it, or choose another --output")
    try:
        file = ResultFile(descriptor, path)
        if resume:
            file.go_on()
        elif os.fstat(descriptor).st_size:
            raise BatchResultsError(f"{path} is there already; add --resume to go on with it, or choose another")
        yield file
    finally:
        release(descriptor)
