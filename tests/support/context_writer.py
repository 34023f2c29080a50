"""A program that changes a context, and what must be flushed to the disk before each change is acknowledged."""

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

# Prints a line before and after each call; in between the calls that reach the disk must be seen.
WRITER = """
import os, sys
from pathlib import Path
from cleveragents import ContextManager
ContextManager("warm", Path(sys.argv[1])).add_message("user", "x")
def mark(text):
    os.write(1, f"{text}\\n".encode())
mark("making")
context = ContextManager("talk", Path(sys.argv[1]))
mark("adding")
context.add_message("user", "hello")
mark("updating")
context.update_state({"a": 1})
mark("clearing")
context.clear()
mark("done")
"""


def assert_flushed(calls: Sequence[str], root: Path) -> None:
    """What ``WRITER`` changed in ``root`` reached the disk in the order that a crash leaves whole."""
    marks = ["making", "adding", "updating", "clearing", "done"]
    places = [next(n for n, call in enumerate(calls) if "write" in call and f"{mark}\\n" in call) for mark in marks]
    making, adding, updating, clearing = (calls[start:end] for start, end in pairwise(places))

    def in_order(seen: Sequence[str], *patterns: str) -> None:
        position = 0
        for pattern in patterns:
            found = next((n for n in range(position, len(seen)) if re.search(pattern, seen[n])), None)
            assert found is not None, f"{pattern} is not among, or not at its place in:\n" + "\n".join(seen)
            position = found + 1

    folder, name = re.escape(str(root)), r"fsync\([^/]*"
    in_order(
        making,
        rf"write\([^/]*{folder}/\.new-\w+/\.context\.json",
        rf"{name}{folder}/\.new-\w+/\.context\.json",
        r"(rename|replace).*/context\.json",
        rf"{name}{folder}/\.new-\w+[>)]",
        rf"(rename|replace).*{folder}/\.new-\w+.*{folder}/talk",
        rf"{name}{folder}[>)]",
    )
    in_order(adding, rf"write\([^/]*{folder}/talk/messages\.jsonl.*hello", rf"{name}{folder}/talk/messages\.jsonl")
    in_order(
        updating,
        rf"write\([^/]*{folder}/talk/\.context\.json",
        rf"{name}{folder}/talk/\.context\.json",
        rf"(rename|replace).*{folder}/talk/context\.json",
        rf"{name}{folder}/talk[>)]",
    )
    in_order(
        clearing,
        r"(rename|replace).*/context\.json",
        r"(rename|replace).*/messages\.jsonl",
        rf"{name}{folder}/talk[>)]",
    )
