"""``run --batch``: results of many prompts on stdout or in a file, how far they are, and what became of them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleveragents.batch.manifest import Manifest, read_manifest
from cleveragents.batch.prompts import Prompt, read_prompts
from cleveragents.batch.result_file import ResultFile, read_results, result_file, right_results
from cleveragents.batch.results import Result, results
from cleveragents.cli.exit_codes import ExitCode
from cleveragents.cli.kit.output import say, show_json, warn
from cleveragents.cli.kit.progress_bar import counting_bar
from cleveragents.cli.run.printers import Remarks
from cleveragents.cli.run.progress import usage_line
from cleveragents.conversation.usage import Usage
from cleveragents.disk.files import read_file, storage_errors
from cleveragents.errors import BatchResultsError

if TYPE_CHECKING:
    from cleveragents.agents.events import Listener
    from cleveragents.app import CleverAgentsApp


@dataclass(frozen=True, slots=True)
class Output:
    """The file that results go to, and the ``manifest`` of new ones.

    ``resume`` goes on after the last whole result in it. What is right in the results ``old`` is copied, ``unchanged``
    only if they are of this configuration.
    """

    path: Path
    manifest: Manifest
    resume: bool = False
    old: Path | None = None
    unchanged: bool = False


@dataclass(slots=True)
class _Tally:
    """What has become of the prompts of one run, in numbers, and what all of them used."""

    answered: int = 0
    failed: int = 0
    copied: int = 0
    before: int = 0
    failed_before: int = 0
    right: bool = False
    first_error: str = ""
    used: Usage = field(default_factory=Usage)

    def add(self, result: Result) -> None:
        """Count one more result."""
        self.right = self.right or bool(result.outputs)
        if result.error is None:
            self.answered += 1
        else:
            self.first_error = self.first_error or f"line {result.prompt.line}: {result.error}"
            self.failed += 1
        if result.usage and result.usage.requests:
            # The cost of a sum is unknown when that of any part is, so it begins with the first part.
            self.used = self.used + result.usage if self.used.requests else result.usage


def run_batch(
    app: CleverAgentsApp, source: Path, *, concurrency: int, output: Output | None, usage: bool, verbose: bool
) -> ExitCode:
    """Run the prompts in ``source`` (``-`` for standard input), and give the command's exit code.

    Results go to stdout or to the file of ``output``, one JSON object a line.
    """
    if output is not None and output.old is not None and output.path.resolve() == output.old.resolve():
        raise BatchResultsError(f"{output.old} keeps its results; give another --output to copy from it")
    prompts = read_prompts(_read(source))
    tally = _Tally()
    with ExitStack() as stack:
        file, todo = None, prompts
        if output is not None:
            file = stack.enter_context(result_file(output.path, resume=output.resume))
            todo = _prepare(file, output, prompts, tally)
        # Between results on the same terminal a bar would be in the way.
        bar = counting_bar("", len(todo), shown=file is not None or not sys.stdout.isatty())
        advance = stack.enter_context(bar)

        def listener(line: int) -> Listener:
            return Remarks(verbose=verbose, before=f"line {line}: ").event

        def keep(result: Result) -> None:
            if file is None:
                show_json(result.as_dict())
                sys.stdout.flush()
            else:
                file.append(result)
            tally.add(result)
            advance()

        asyncio.run(_each(results(app, todo, concurrency, listener), keep))
        if file is not None:
            file.finish()
            if tally.failed and not (tally.right or tally.copied or tally.before):
                # Nothing in it is worth keeping, and it would be in the way of the next try.
                file.discard()
    if usage:
        say(usage_line(tally.used))
    return _said(tally, len(prompts), output)


def _prepare(file: ResultFile, output: Output, prompts: Sequence[Prompt], tally: _Tally) -> list[Prompt]:
    """Those of ``prompts`` that have to be run: they have no result in ``file``, and none that can be copied."""
    todo = file.remaining(prompts)
    tally.before = len(file.results)
    tally.failed_before = sum(result["error"] is not None for result in file.results)
    manifest = output.manifest
    copies: list[dict[str, Any]] = []
    if output.old is not None:
        known = read_manifest(output.old)
        same = known is None or (known.same_configuration(manifest) and not known.mixed)
        if known is None:
            warn(f"{output.old} has no manifest: whether it is of this configuration was not checked")
        elif not same and output.unchanged:
            say(f"{manifest.config} has changed since {output.old}: every prompt is run again")
        elif not same:
            warn(f"{manifest.config} has changed since {output.old}: what is copied is of the configuration of then")
            manifest = replace(manifest, mixed=True)
        if same or not output.unchanged:
            old = read_results(output.old)
            _warn_of_unchecked(output.old, old)
            copies = right_results(old, todo)
    if not file.check_configuration(manifest):
        warn(f"{output.path} has no manifest: whether it is of this configuration was not checked")
    _warn_of_unchecked(output.path, file.results)
    file.copy(copies)
    tally.copied = len(copies)
    copied = {copy["line"] for copy in copies}
    return [prompt for prompt in todo if prompt.line not in copied]


def _warn_of_unchecked(path: Path, found: Sequence[dict[str, Any]]) -> None:
    unchecked = sum("sha256" not in result for result in found)
    if unchecked:
        warn(f"{unchecked} results in {path} have no hash: whether their lines have changed was not checked")


def _said(tally: _Tally, count: int, output: Output | None) -> ExitCode:
    """Say in a line or two what became of ``count`` prompts; the exit code for it."""
    parts = [
        f"{tally.answered} answered",
        *([f"{tally.copied} copied"] if tally.copied else []),
        *([f"{tally.before} were there"] if tally.before else []),
        *([f"{tally.failed} failed"] if tally.failed else []),
    ]
    say(f"{count} prompts: {', '.join(parts)}")
    failed = tally.failed + tally.failed_before
    if not failed:
        return ExitCode.DONE
    if failed == count and not tally.right:
        again = ""
        why = f"; the first: {tally.first_error}" if tally.first_error else ""
    else:
        again = f"; --retry-failed {output.path} runs them again" if output is not None else ""
        why = ""
    say(f"error: {failed} of {count} prompts failed{why}{again}")
    return ExitCode.FAILED


async def _each(given: AsyncGenerator[Result, None], keep: Callable[[Result], None]) -> None:
    """Keep each result as it comes."""
    async with aclosing(given):
        async for result in given:
            keep(result)


def _read(source: Path) -> bytes:
    if str(source) == "-":
        return sys.stdin.buffer.read()
    with storage_errors(source, "read"):
        return read_file(source)
