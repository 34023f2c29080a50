"""``run --batch``: results of many prompts on stdout or in a file, and how far they are."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import TYPE_CHECKING

from cleveragents.batch import Result, read_prompts, result_file, results
from cleveragents.cli.exit_codes import ExitCode
from cleveragents.cli.kit.output import say, show_json
from cleveragents.cli.kit.progress_bar import counting_bar
from cleveragents.cli.run.printers import Remarks
from cleveragents.cli.run.progress import usage_line
from cleveragents.conversation.usage import Usage
from cleveragents.disk.files import read_file, storage_errors

if TYPE_CHECKING:
    from cleveragents.agents.events import Listener
    from cleveragents.app import CleverAgentsApp


def run_batch(
    app: CleverAgentsApp,
    source: Path,
    *,
    concurrency: int,
    output: Path | None,
    resume: bool,
    usage: bool,
    verbose: bool,
) -> ExitCode:
    """Run the prompts in ``source`` (``-`` for standard input), and give the command's exit code.

    Results go to stdout, or to the file ``output``, one JSON object a line; ``resume`` goes on after the last
    whole line of that file.
    """
    prompts = read_prompts(_read(source))
    with ExitStack() as stack:
        file = None if output is None else stack.enter_context(result_file(output, resume=resume))
        todo = prompts if file is None else file.remaining(prompts)
        # Between results on the same terminal a bar would be in the way.
        bar = counting_bar(len(todo), shown=file is not None or not sys.stdout.isatty())
        advance = stack.enter_context(bar)

        def listener(line: int) -> Listener:
            return Remarks(verbose=verbose, before=f"line {line}: ").event

        def keep(result: Result) -> None:
            if file is None:
                show_json(result.as_dict())
                sys.stdout.flush()
            else:
                file.append(result)
            advance()

        failed, used = asyncio.run(_each(results(app, todo, concurrency, listener), keep))
        failed += file.failed if file else 0
    if usage:
        say(usage_line(used))
    if failed:
        say(f"error: {failed} of {len(prompts)} prompts failed")
    return ExitCode.FAILED if failed else ExitCode.DONE


async def _each(given: AsyncGenerator[Result, None], keep: Callable[[Result], None]) -> tuple[int, Usage]:
    """Keep each result as it comes; how many have an error, and what all of them used."""
    failed, used = 0, Usage()
    async with aclosing(given):
        async for result in given:
            keep(result)
            failed += result.error is not None
            if result.usage and result.usage.requests:
                # The cost of a sum is unknown when that of any part is, so it begins with the first part.
                used = used + result.usage if used.requests else result.usage
    return failed, used


def _read(source: Path) -> bytes:
    if str(source) == "-":
        return sys.stdin.buffer.read()
    with storage_errors(source, "read"):
        return read_file(source)
