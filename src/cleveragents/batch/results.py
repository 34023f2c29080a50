"""What becomes of the prompts of a batch: several at work at the same time, their results in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cleveragents.agents.events import Listener
from cleveragents.batch.prompts import Prompt
from cleveragents.conversation.usage import Usage
from cleveragents.errors import CleverAgentsError

if TYPE_CHECKING:
    from cleveragents.app import CleverAgentsApp

AHEAD = 4
"""Results for each one that may be worked on at the same time that may wait for the one before them in order."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of ``prompt``: its outputs, and what failed, which may be there both.

    ``usage`` is None where nothing was run: the line holds no prompt, or the run could not begin.
    ``cut_off`` is as in RunResult.
    """

    prompt: Prompt
    outputs: list[Any] = field(default_factory=list)
    error: str | None = None
    usage: Usage | None = None
    cut_off: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON data; ``cost`` is in dollars, None when it is not known."""
        return {
            "line": self.prompt.line,
            "sha256": self.prompt.sha256,
            **({"input": self.prompt.rest} if self.prompt.rest else {}),
            "output": self.outputs[-1] if self.outputs else None,
            "outputs": self.outputs,
            "error": self.error,
            **({"cut_off": self.cut_off} if self.cut_off else {}),
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
        return Result(prompt, error=prompt.fault)
    try:
        run = await app.run(prompt.text, listener=listener)
    except CleverAgentsError as error:
        return Result(prompt, error=str(error), usage=error.usage)
    return Result(prompt, run.outputs, "; ".join(map(str, run.errors)) or None, run.usage, run.cut_off)
