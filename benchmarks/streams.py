"""What a message costs on its way through three operators that need no expression, beside bare reactivex.

Run: python benchmarks/streams.py. Medians of interleaved rounds; the ratio is what counts, the machine is not.
"""

import asyncio
import itertools
import statistics
import time
from collections.abc import Callable, Iterator

from reactivex import operators as ops
from reactivex.subject import Subject

from cleveragents import Message, Reply, RouteConfig, StreamRouter

MESSAGES = 50_000
EXPRESSIONS = 300
ROUNDS = 9


class Same:
    """An agent that costs nothing itself."""

    name = "same"

    async def process(self, message: Message) -> Reply:
        return Reply(message.content)


def routed(messages: list[Message], *through: object, routes: int = 1) -> float:
    names = ["input", *(f"route{number}" for number in range(routes))]
    configs = [
        RouteConfig.model_validate({"name": name, "from": before, "through": list(through)})
        for before, name in itertools.pairwise(names)
    ]
    configs[-1] = configs[-1].model_copy(update={"to": ("output",)})
    router = StreamRouter({"same": Same()}, configs)

    async def run() -> float:
        async with router.start() as one_run:
            begin = time.perf_counter()
            count = sum([1 async for _ in one_run.results(messages)])
            spent = time.perf_counter() - begin
        checked(count, messages)
        return spent

    return asyncio.run(run())


def bare(messages: list[Message]) -> float:
    """The same three steps in reactivex, as one writes them there; its own distinct compares with all before."""
    seen: set[str] = set()
    out: list[Message] = []

    def is_new(message: Message) -> bool:
        if message.content in seen:
            return False
        seen.add(message.content)
        return True

    subject: Subject[Message] = Subject()
    subject.pipe(ops.skip(1), ops.filter(is_new), ops.take(len(messages))).subscribe(out.append)
    begin = time.perf_counter()
    for message in messages:
        subject.on_next(message)
    spent = time.perf_counter() - begin
    checked(len(out), messages)
    return spent


def generators(messages: list[Message]) -> float:
    """The same three steps as plain generators."""
    seen: set[str] = set()

    def skipped() -> Iterator[Message]:
        source = iter(messages)
        next(source)
        yield from source

    def new() -> Iterator[Message]:
        for message in skipped():
            if message.content not in seen:
                seen.add(message.content)
                yield message

    def taken() -> Iterator[Message]:
        for number, message in enumerate(new()):
            if number >= len(messages):
                return
            yield message

    begin = time.perf_counter()
    checked(sum(1 for _ in taken()), messages)
    return time.perf_counter() - begin


def checked(count: int, messages: list[Message]) -> None:
    """All but the one message that may have been skipped."""
    if count < len(messages) - 1:
        raise SystemExit(f"{count} of {len(messages)} messages arrived")


def main() -> None:
    many = [Message(f"message {number}") for number in range(MESSAGES)]
    few = many[:EXPRESSIONS]
    three = ({"skip": 1}, {"distinct": "message"}, {"take": MESSAGES})
    cases: dict[str, tuple[int, Callable[[], float]]] = {
        "plain generators": (MESSAGES, lambda: generators(many)),
        "bare reactivex": (MESSAGES, lambda: bare(many)),
        "skip, distinct, take": (MESSAGES, lambda: routed(many, *three)),
        "one empty route": (MESSAGES, lambda: routed(many)),
        "three empty routes": (MESSAGES, lambda: routed(many, routes=3)),
        "an agent": (EXPRESSIONS * 4, lambda: routed(many[: EXPRESSIONS * 4], "same")),
        "an expression": (EXPRESSIONS, lambda: routed(few, {"map": "message.upper()"})),
    }
    times: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(ROUNDS):
        for name, (count, measure) in cases.items():
            times[name].append(measure() / count)
    reference = statistics.median(times["bare reactivex"])
    for name in cases:
        spent = statistics.median(times[name])
        print(
            f"{name:22} {spent * 1e6:8.2f} µs a message {1 / spent:12,.0f}/s {reference / spent:6.2f} of bare reactivex"
        )


if __name__ == "__main__":
    main()
