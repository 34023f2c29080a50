"""Named contexts beside the bare system calls, and long conversations beside short ones.

One interleaved run, so that whatever else the machine does hits every kind alike; medians, and their ratios.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from cleveragents import ContextManager

ROUNDS = 500
SHORT, LONG = 10, 10_000


def filled(root: Path, name: str, count: int) -> ContextManager:
    """A context of ``count`` messages, the way that many calls of ``add_message`` would leave it."""
    context = ContextManager(name, root)
    line = context.add_message("user", "x" * 200, {"number": 1}).as_line()
    (context.directory / "messages.jsonl").write_bytes(line * count)
    return context


def append_durably(path: Path, line: bytes) -> None:
    """A line on disk with nothing around it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, line)
    os.fsync(descriptor)
    os.close(descriptor)


def medians(kinds: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The median time of each kind, in microseconds, over rounds in which each has its turn."""
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(ROUNDS):
        for name, call in kinds.items():
            begun = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begun)
    return {name: statistics.median(values) * 1e6 for name, values in times.items()}


def main() -> None:
    """Print the medians and the ratios that are promised."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        short, long = filled(root, "short", SHORT), filled(root, "long", LONG)
        line = short.messages[0].as_line()

        def add(context: ContextManager) -> Callable[[], object]:
            return lambda: context.add_message("user", "x" * 200, {"number": 1})

        result = medians(
            {
                "bare line with fsync": lambda: append_durably(root / "bare.jsonl", line),
                f"add_message, {SHORT} messages": add(short),
                f"add_message, {LONG:,} messages": add(long),
                f"last_messages(10) of {SHORT}": lambda: short.last_messages(10),
                f"last_messages(10) of {LONG:,}": lambda: long.last_messages(10),
            }
        )
    for name, median in result.items():
        print(f"{name:30} {median:9.1f} us")
    bare, add_short, add_long, last_short, last_long = result.values()
    for name, ratio, limit in (
        ("add_message beside a bare line", add_short / bare, 2.0),
        ("add_message, long beside short", add_long / add_short, 1.5),
        ("last_messages, long beside short", last_long / last_short, 1.5),
    ):
        print(f"{name:34} {ratio:5.2f} (at most {limit})")


if __name__ == "__main__":
    main()
