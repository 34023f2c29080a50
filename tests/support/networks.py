"""Small agents and routes for tests of streams."""

import asyncio
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from cleveragents import Message, Reply, RouteConfig, RunResult, StreamRouter


class Doing:
    """An agent that does what a function says: of a message, giving a Reply or only its content."""

    def __init__(self, name: str, function: Callable[[Message], Any]) -> None:
        self.name = name
        self.function = function

    async def process(self, message: Message) -> Reply:
        result = self.function(message)
        if inspect.isawaitable(result):
            result = await result
        return result if isinstance(result, Reply) else Reply(result)


def agents(**functions: Callable[[Message], Any]) -> dict[str, Doing]:
    return {name: Doing(name, function) for name, function in functions.items()}


def route(
    name: str, source: str | list[str], through: Iterable[Any] = (), to: str | Iterable[str] = (), **more: str
) -> RouteConfig:
    return RouteConfig.model_validate({"name": name, "from": source, "through": list(through), "to": to or [], **more})


def through(*steps: Any, **functions: Callable[[Message], Any]) -> StreamRouter:
    """A router with one route, from the input through ``steps`` to the output."""
    return StreamRouter(agents(**functions), [route("r", "input", steps, "output")])


def run(
    router: StreamRouter, content: Any, context: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None
) -> RunResult:
    return asyncio.run(router.run(Message(content, context or {}, metadata or {})))


async def pass_through(router: StreamRouter, contents: Any, context: dict[str, Any] | None = None) -> list[Any]:
    """What comes out when every content is sent through in one run: contents of outputs, and errors."""
    messages = (Message(content) for content in contents)
    async with router.start(context) as one_run:
        results = [result async for result in one_run.results(messages)]
    return [result.content if isinstance(result, Message) else result for result in results]
