"""What was acknowledged is there after a kill; a disk that refuses costs nothing that was there before."""

import json
import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise

import pytest

from cleveragents import ContextManager

# Forks writers and kills each at a random moment, decided by how many calls it has acknowledged and a few
# thousand rounds of nothing. Prints how many were killed and what was wrong.
KILLER = r"""
import json, os, random, signal, sys
from pathlib import Path
from cleveragents import ContextManager

root, kills, chance = Path(sys.argv[1]), int(sys.argv[2]), random.Random(sys.argv[3])
told, wrong, all_acknowledged = [], [], {}
ContextManager("warm", root).add_message("user", "loads what a writer needs, once")

def write_for_ever(life, pipe):
    context = ContextManager("talk", root, on_damage=told.append)
    number = 0
    while True:
        # A large message now and then, so that a kill can come in the middle of writing one.
        context.add_message("user", "x" * (500_000 if number % 5 == 4 else 10), {"life": life, "number": number})
        os.write(pipe, b"m")
        context.update_state({"lives": {str(life): number}})
        os.write(pipe, b"s")
        number += 1

for life in range(kills):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            write_for_ever(life, writing)
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
    os.close(writing)
    acknowledged = os.read(reading, 1)
    for _ in range(chance.randrange(8)):
        acknowledged += os.read(reading, 1)
    for _ in range(chance.randrange(4000)):
        pass
    os.kill(child, signal.SIGKILL)
    ended = os.waitpid(child, 0)[1]
    if not os.WIFSIGNALED(ended):
        wrong.append(f"life {life} ended by itself")
    while more := os.read(reading, 100):
        acknowledged += more
    os.close(reading)

    context = ContextManager.open("talk", root, on_damage=told.append)
    json.loads((context.directory / "context.json").read_bytes())
    messages, states = acknowledged.count(b"m"), acknowledged.count(b"s")
    mine = [m.metadata["number"] for m in context.last_messages(40) if m.metadata["life"] == life]
    if mine != list(range(len(mine))) or not messages <= len(mine) <= messages + 1:
        wrong.append(f"life {life}: {messages} messages acknowledged, found {mine}")
    if not states - 1 <= context.state.get("lives", {}).get(str(life), -1) <= states:
        wrong.append(f"life {life}: {states} states acknowledged, found {context.state}")
    all_acknowledged[life] = messages

context = ContextManager("talk", root)
context.add_message("user", "the end", {"life": -1})
found = {}
for message in context.messages:
    found[message.metadata["life"]] = found.get(message.metadata["life"], 0) + 1
wrong += [life for life, count in all_acknowledged.items() if not count <= found.get(life, 0) <= count + 1]
for line in (context.directory / "messages.jsonl").read_bytes().splitlines():
    json.loads(line)
print(json.dumps({"killed": kills, "acknowledged": sum(all_acknowledged.values()), "wrong": wrong}))
"""


def test_c01_killed_300_times_while_writing_nothing_acknowledged_is_lost(root):
    done = subprocess.run(
        [sys.executable, "-c", KILLER, str(root), "300", "seed"],
        capture_output=True,
        check=True,
        text=True,
        timeout=300,
    )
    result = json.loads(done.stdout)
    assert result["wrong"] == []
    assert result["killed"] == 300
    assert result["acknowledged"] > 300
    assert done.stderr == ""


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

# Without strace: the same calls, as Python makes them.
WATCHED = (
    """
import os, sys
paths = {1: "stdout"}
def watch(name, describe):
    real = getattr(os, name)
    def watched(*arguments, **options):
        result = real(*arguments, **options)
        print(f"{name}({describe(result, *arguments)})", file=sys.stderr)
        return result
    setattr(os, name, watched)
def opened(result, path, *rest):
    paths[result] = os.fspath(path)
    return paths[result]
watch("open", opened)
watch("write", lambda result, descriptor, data: f"{paths.get(descriptor)}, {bytes(data)!r}")
watch("fsync", lambda result, descriptor: paths.get(descriptor))
watch("replace", lambda result, old, new: f"{old}, {new}")
watch("rename", lambda result, old, new: f"{old}, {new}")
"""
    + WRITER
)


def strace_works():
    return (
        shutil.which("strace") and subprocess.run(["strace", "true"], capture_output=True, check=False).returncode == 0
    )


def calls_by_strace(root):
    calls = "trace=write,fsync,fdatasync,rename,renameat,renameat2"
    done = subprocess.run(
        ["strace", "-f", "-y", "-s", "200", "-e", calls, sys.executable, "-c", WRITER, str(root)],
        capture_output=True,
        check=True,
        text=True,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    return done.stderr.splitlines()


def calls_by_python(root):
    done = subprocess.run([sys.executable, "-c", WATCHED, str(root)], capture_output=True, check=True, text=True)
    return done.stderr.splitlines()


WAYS = [calls_by_python, *([calls_by_strace] if strace_works() else [])]


@pytest.mark.parametrize("calls_of", WAYS)
def test_every_change_is_flushed_to_the_disk_before_it_is_acknowledged(root, calls_of):
    calls = calls_of(root)
    marks = ["making", "adding", "updating", "clearing", "done"]
    places = [next(n for n, call in enumerate(calls) if "write" in call and f"{mark}\\n" in call) for mark in marks]
    making, adding, updating, clearing = (calls[start:end] for start, end in pairwise(places))

    def in_order(seen, *patterns):
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


# A limit on the size of files stands for a full disk: a write goes half-way and then fails.
LIMITED = """
import os, resource, sys
from pathlib import Path
from cleveragents import ContextManager
from cleveragents.errors import StorageError
context = ContextManager("talk", Path(sys.argv[1]))
size = (context.directory / "messages.jsonl").stat().st_size
calls = {
    "add_message": (size + 20, lambda: context.add_message("user", "x" * 100)),
    "update_state": (size + 20, lambda: context.update_state({"long": "x" * size})),
    "copy": (size - 20, lambda: context.copy("copy")),
    "export_to": (size - 20, lambda: context.export_to(Path(sys.argv[1]) / "export.json")),
}
for name, (limit, call) in calls.items():
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        call()
    except StorageError as error:
        print(name, error)
"""


def test_c01_a_write_that_fails_half_way_leaves_everything_as_it_was(root):
    context = ContextManager("talk", root)
    for number in range(6):
        context.add_message("user", f"m{number}")
    context.update_state({"kept": True})
    files = {path: path.read_bytes() for path in context.directory.iterdir()}
    done = subprocess.run([sys.executable, "-c", LIMITED, str(root)], capture_output=True, check=True, text=True)
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["add_message", "update_state", "copy", "export_to"]
    assert all("File too large" in line for line in lines)
    assert "messages.jsonl" in lines[0]
    assert "context.json" in lines[1]
    assert {path: path.read_bytes() for path in context.directory.iterdir()} == files
    assert sorted(path.name for path in root.iterdir()) == [".locks", "talk"]
    context.add_message("user", "m6")
    assert [message.content for message in context.messages] == [f"m{number}" for number in range(7)]


def test_the_lock_of_a_killed_process_is_free(root, start):
    context = ContextManager("talk", root)
    holder = start(
        """
import sys
from pathlib import Path
from cleveragents import ContextManager
with ContextManager("talk", Path(sys.argv[1])).turn():
    print("holding", flush=True)
    sys.stdin.read()
""",
        root,
    )
    assert holder.stdout.readline() == "holding\n"
    holder.kill()
    holder.wait()
    with context.turn(wait=0):
        context.add_message("user", "x")
