"""``run --batch``: many prompts through one network, and what becomes of each, in the order of the input."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, aclosing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cleveragents.agents.events import Listener
from cleveragents.cli.output import say, show_json
from cleveragents.cli.progress import usage_line
from cleveragents.conversation.usage import Usage
from cleveragents.disk.files import storage_errors, write_all
from cleveragents.errors import CleverAgentsError, InvalidValueError
from cleveragents.values.json import dump_json, load_json
from cleveragents.values.text import clean_text

if TYPE_CHECKING:
    from cleveragents.app import CleverAgentsApp

AHEAD = 4
"""Results for each one that may be worked on at the same time that may wait for the one before them in order."""

_EXPECTED = 'expected a JSON text, or an object with "prompt"'


class _DamagedError(click.ClickException):
    exit_code = 5


class _InUseError(click.ClickException):
    exit_code = 6


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


async def results(
    app: CleverAgentsApp, prompts: Sequence[Prompt], concurrency: int, listener: Callable[[int], Listener]
) -> AsyncGenerator[tuple[dict[str, Any], Usage], None]:
    """What becomes of each of ``prompts``, in their order, with at most ``concurrency`` at work at the same time.

    ``listener`` makes the listener for a line. One that fails is a result as well.
    """
    room = asyncio.Semaphore(concurrency)

    async def result(prompt: Prompt) -> tuple[dict[str, Any], Usage]:
        async with room:
            return await _result(app, prompt, listener(prompt.line))

    waiting: deque[asyncio.Task[tuple[dict[str, Any], Usage]]] = deque()
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


async def _result(app: CleverAgentsApp, prompt: Prompt, listener: Listener) -> tuple[dict[str, Any], Usage]:
    document: dict[str, Any] = {
        "line": prompt.line,
        "output": None,
        "outputs": [],
        "error": prompt.fault or None,
        "usage": None,
    }
    if prompt.fault:
        return document, Usage()
    try:
        run = await app.run(prompt.text, listener=listener)
    except CleverAgentsError as error:
        return {**document, "error": str(error)}, Usage()
    used = run.usage
    cost = None if used.cost is None else float(used.cost)
    document |= {
        "output": run.output,
        "outputs": run.outputs,
        "error": "; ".join(map(str, run.errors)) or None,
        "usage": {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens, "cost": cost},
    }
    return document, used


def run_batch(
    app: CleverAgentsApp,
    source: Path,
    *,
    concurrency: int,
    output: Path | None,
    resume: bool,
    usage: bool,
    listener: Callable[[int], Listener],
) -> int:
    """Run the prompts in ``source`` (``-`` for standard input), and give the command's exit code.

    Results go to stdout, or to the file ``output``, one JSON object a line; ``resume`` goes on after the last
    whole line of that file.
    """
    prompts = read_prompts(_read(source))
    with ExitStack() as stack:
        file = None if output is None else stack.enter_context(_result_file(output, resume=resume))
        if file is not None and file.last > max((prompt.line for prompt in prompts), default=0):
            raise click.UsageError(f"{output} has results of {file.last} lines, which the input does not have")
        todo = [prompt for prompt in prompts if file is None or prompt.line > file.last]
        advance = stack.enter_context(_progress_bar(len(todo), hidden=file is None and sys.stdout.isatty()))
        total = Usage()

        async def run() -> int:
            nonlocal total
            failed = 0
            async with aclosing(results(app, todo, concurrency, listener)) as given:
                async for result, used in given:
                    if file is None:
                        show_json(result)
                        sys.stdout.flush()
                    else:
                        file.append(result)
                    failed += result["error"] is not None
                    if used.requests:
                        # The cost of a sum is unknown when that of any part is, so it begins with the first part.
                        total = total + used if total.requests else used
                    advance()
            return failed

        failed = asyncio.run(run()) + (file.failed if file else 0)
    if usage:
        say(usage_line(total))
    if failed:
        say(f"error: {failed} of {len(prompts)} prompts failed")
    return 1 if failed else 0


def _read(source: Path) -> bytes:
    if str(source) == "-":
        return sys.stdin.buffer.read()
    with storage_errors(source, "read"):
        return source.read_bytes()


@contextmanager
def _progress_bar(length: int, *, hidden: bool) -> Iterator[Callable[[], None]]:
    """A function to be called after each result; on a terminal a bar shows how far it is."""
    if hidden or not sys.stderr.isatty():
        yield lambda: None
        return
    with click.progressbar(length=length, file=sys.stderr, show_pos=True) as bar:
        yield lambda: bar.update(1)


# --- results on disk ------------------------------------------------------------------------------------


class _ResultFile:
    """Results in a file that is open for this run alone; ``last`` is the line of the last one, 0 without any."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path
        self.last = 0
        self.failed = 0

    def append(self, result: Mapping[str, Any]) -> None:
        """Add a result at the end; it is on disk when this returns."""
        with storage_errors(self._path):
            write_all(self._descriptor, dump_json(result).encode() + b"\n")
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
            raise _DamagedError(f"line {number} of {self._path} is not the next result of a batch; nothing was changed")
        self.last = result["line"]
        self.failed += failed


@contextmanager
def _result_file(path: Path, *, resume: bool) -> Iterator[_ResultFile]:
    from cleveragents.disk.locks import acquire, release

    with storage_errors(path):
        # The lock is on the file itself, so that nothing is left beside it.
        descriptor = acquire(path.absolute(), 0)
    if descriptor is None:
        raise _InUseError(f"another run is writing {path}; wait for it, or choose another --output")
    try:
        file = _ResultFile(descriptor, path)
        if resume:
            file.go_on()
        elif os.fstat(descriptor).st_size:
            raise click.UsageError(f"{path} is there already; add --resume to go on with it, or choose another")
        yield file
    finally:
        release(descriptor)
