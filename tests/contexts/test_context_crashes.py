"""What was acknowledged is there after a kill; a disk that refuses costs nothing that was there before."""

import subprocess
import sys

import pytest

from cleveragents import ContextManager
from support.campaign import campaign
from support.context_writer import WRITER, assert_flushed
from support.killer import run_killer

# Kills writers, and prints how many were killed, how much they had acknowledged and what was wrong.
KILLER = r"""
import json, sys
from pathlib import Path
from cleveragents import ContextManager
from support.killer import lives

root, kills = Path(sys.argv[1]), int(sys.argv[2])
told, wrong, all_acknowledged = [], [], {}
ContextManager("warm", root).add_message("user", "loads what a writer needs, once")

def write_for_ever(life, acknowledge):
    context = ContextManager("talk", root, on_damage=told.append)
    number = 0
    while True:
        # A large message now and then, so that a kill can come in the middle of writing one.
        context.add_message("user", "x" * (500_000 if number % 5 == 4 else 10), {"life": life, "number": number})
        acknowledge(b"m")
        context.update_state({"lives": {str(life): number}})
        acknowledge(b"s")
        number += 1

for life, acknowledged in lives(kills, write_for_ever, after=range(1, 9), rounds=4000):
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


@pytest.mark.campaign
def test_c01_killed_again_and_again_while_writing_nothing_acknowledged_is_lost(root):
    kills = campaign(short=60, long=300)
    result = run_killer(KILLER, root, kills, home=root)
    assert result["wrong"] == []
    assert result["killed"] == kills
    assert result["acknowledged"] > kills


# What Python asks of the system; tests/outside looks at the system calls themselves.
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


def test_every_change_is_flushed_to_the_disk_before_it_is_acknowledged(root):
    done = subprocess.run([sys.executable, "-c", WATCHED, str(root)], capture_output=True, check=True, text=True)
    assert_flushed(done.stderr.splitlines(), root)


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
