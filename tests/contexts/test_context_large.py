"""A long history costs only whoever asks for all of it. Counted in bytes that were read and written, not in time."""

import json
import subprocess
import sys

import pytest

from cleveragents import ContextManager
from cleveragents.contexts.message import new_message

# Prints what each call read and wrote, in bytes, as the system counts them.
COUNTED = """
import json, sys
from pathlib import Path
from cleveragents import ContextManager
from cleveragents.contexts import describe_contexts

root, counted = Path(sys.argv[1]), {}
def count(name, call):
    def now():
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
        return [int(line.split()[1]) for line in lines[:2]]
    call()  # what is loaded on first use is not counted
    before = now()
    call()
    counted[name] = [after - old for after, old in zip(now(), before)]
for name in ("big", "small"):
    context = ContextManager.open(name, root)
    count(f"last of {name}", lambda: context.last_messages(10))
    count(f"add to {name}", lambda: context.add_message("user", "x" * 100))
    count(f"exists {name}", context.exists)
    count(f"open {name}", lambda: ContextManager.open(name, root))
count("list", lambda: describe_contexts(root))
print(json.dumps(counted))
"""


@pytest.fixture
def fill(root):
    def filling(name, count, size=300):
        context = ContextManager(name, root)
        line = new_message("user", "x" * size).as_line()
        (context.directory / "messages.jsonl").write_bytes(line * count)
        return context

    return filling


def test_c79_a_big_context_makes_nothing_else_slow(root, fill):
    big = fill("big", 100_000)
    for number in range(20):
        fill(f"small {number}", 10)
    fill("small", 10)
    done = subprocess.run([sys.executable, "-c", COUNTED, str(root)], capture_output=True, check=True, text=True)
    counted = json.loads(done.stdout)
    size = (big.directory / "messages.jsonl").stat().st_size
    assert size > 30_000_000
    for what, (read, written) in counted.items():
        assert read < 250_000, what
        assert written < 2_000, what
    for call in ("last of", "add to", "exists", "open"):
        assert counted[f"{call} big"][0] <= counted[f"{call} small"][0] + 20_000
        assert counted[f"{call} big"][1] <= counted[f"{call} small"][1]


def test_c80_what_is_kept_and_written_grows_in_proportion(root):
    program = """
import sys
from pathlib import Path
from cleveragents import ContextManager
context = ContextManager("talk", Path(sys.argv[1]))
for turn in range(1, 1001):
    context.add_message("user", "x" * 500)
    context.add_message("assistant", "y" * 500)
    if turn in (250, 500, 1000):
        written = Path("/proc/self/io").read_text(encoding="ascii").splitlines()[1].split()[1]
        print((context.directory / "messages.jsonl").stat().st_size, written)
"""
    done = subprocess.run([sys.executable, "-c", program, str(root)], capture_output=True, check=True, text=True)
    (size, written), (double, _), (fourfold, all_written) = [
        map(int, line.split()) for line in done.stdout.splitlines()
    ]
    assert double <= 2.01 * size
    assert fourfold <= 4.01 * size
    assert int(all_written) <= 4.1 * int(written)
    assert int(all_written) <= 1.1 * fourfold


def test_a_message_of_ten_megabytes_does_not_hide_those_around_it(root):
    context = ContextManager("talk", root)
    context.add_message("user", "before")
    context.add_message("user", "x" * 10_000_000)
    context.add_message("user", "after")
    assert [len(message.content) for message in context.last_messages(3)] == [6, 10_000_000, 5]
    assert [message.content for message in context.last_messages(1)] == ["after"]


LONG = """
import resource, sys
from pathlib import Path
from cleveragents import ContextManager
from cleveragents.contexts.message import new_message
root = Path(sys.argv[1])
context = ContextManager("long", root)
with (context.directory / "messages.jsonl").open("wb") as file:
    for _ in range(60):
        file.write(new_message("user", "x" * 500_000).as_line())
    file.write(new_message("user", "x").as_line() * 5_000)
warm = ContextManager("warm", root)
warm.export_to(root / "export.json")
ContextManager.import_from(root / "export.json", "warm", root, replace=True)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
context.export_to(root / "export.json", overwrite=True)
ContextManager.import_from(root / "export.json", "again", root)
context.copy("copy")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def test_a_long_conversation_is_exported_imported_and_copied_in_flat_memory(root):
    done = subprocess.run([sys.executable, "-c", LONG, str(root)], check=True, capture_output=True, text=True)
    size = (root / "long" / "messages.jsonl").stat().st_size
    assert size > 30_000_000
    assert int(done.stdout) < size / 2
    for name in ("again", "copy"):
        assert (root / name / "messages.jsonl").read_bytes() == (root / "long" / "messages.jsonl").read_bytes()
