"""``session list`` among 10,000 sessions beside ``llm logs -n 1`` among 10,000 logged answers.

One interleaved run, medians, compiled bytecode. ``llm`` is a program of its own, with its own libraries: install it
into another environment, and give the path of its command (``python benchmarks/session_list.py /path/to/bin/llm``)
or have it on PATH.
"""

import compileall
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

import cleveragents
from cleveragents import open_sessions

MANY = 10_000
ROUNDS = 31
LIMIT = 0.5

# Runs in llm's own environment: the database as llm makes it, with as many answers as there are sessions here.
FILL = """
import sys, sqlite_utils
from llm.migrations import migrate
db = sqlite_utils.Database(sys.argv[1])
migrate(db)
many = range(int(sys.argv[2]))
db["conversations"].insert_all({"id": f"{n:026}", "name": "Holidays", "model": "m"} for n in many)
db["responses"].insert_all(
    {"id": f"{n:026}", "model": "m", "prompt": "Where to?", "response": "To the sea.", "conversation_id": f"{n:026}",
     "duration_ms": 1, "datetime_utc": "2026-11-30T12:00:00"}
    for n in many
)
"""

COMPILE = "import compileall, sys; [compileall.compile_dir(path, quiet=2) for path in sys.path if 'site-' in path]"


def main() -> None:
    """Print the medians, the ratio, and what was asked of it."""
    llm = sys.argv[1] if len(sys.argv) > 1 else shutil.which("llm")
    if llm is None or not Path(llm).exists():
        print("llm is not installed; see the first lines of this file. Measuring without it.")
        llm = None
    for package in (cleveragents, click):
        compileall.compile_dir(str(Path(str(package.__file__)).parent), quiet=2)
    with tempfile.TemporaryDirectory() as home:
        ours = [sys.executable, "-m", "cleveragents", "session", "list"]
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "session list": ours,
            "session list --limit 10000": [*ours, "--limit", str(MANY)],
            "session list --actor --since": [*ours, "--actor", "team/bot7", "--since", "2026-01-01"],
        }
        with open_sessions(f"sqlite:///{home}/cleveragents.db") as sessions:
            for number in range(MANY):
                sessions.create(f"team/bot{number % 500}", title="Holidays")
        if llm:
            python = str(Path(llm).parent / "python")
            subprocess.run([python, "-c", COMPILE], check=True, stdout=subprocess.DEVNULL)
            subprocess.run([python, "-c", FILL, f"{home}/logs.db", str(MANY)], check=True)
            commands["llm logs -n 1"] = [llm, "logs", "-n", "1"]
        environment = os.environ | {"CLEVERAGENTS_HOME": home, "LLM_USER_PATH": home}
        environment.pop("CLEVERAGENTS_DATABASE_URL", None)
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True, env=environment)
                times[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, middle in medians.items():
        print(f"{name:30} {middle * 1000:7.1f} ms   {middle / medians['python -c pass']:6.2f} x bare Python")
    if llm:
        ratio = medians["session list"] / medians["llm logs -n 1"]
        print(f"session list / llm logs -n 1: {ratio:.2f}   asked: at most {LIMIT}")


if __name__ == "__main__":
    main()
