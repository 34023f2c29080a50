"""Start-up of light commands beside ``python -c pass``: one interleaved run, medians, ratios.

The package is compiled to bytecode first, as an installed one is.
"""

import compileall
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

import cleveragents

ROUNDS = 21
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "--help": [sys.executable, "-m", "cleveragents", "--help"],
    "--version": [sys.executable, "-m", "cleveragents", "--version"],
    "context list": [sys.executable, "-m", "cleveragents", "context", "list"],
}
LIMITS = {"--help": 6.0, "context list": 8.0}


def main() -> None:
    for package in (cleveragents, click):
        compileall.compile_dir(str(Path(str(package.__file__)).parent), quiet=2)
    with tempfile.TemporaryDirectory() as home:
        # As on a user's machine: the data home is found by the platform's rules.
        os.environ.pop("CLEVERAGENTS_HOME", None)
        os.environ["HOME"] = home
        os.environ.pop("XDG_DATA_HOME", None)
        for number in range(5):
            cleveragents.ContextManager(f"context {number}").add_message("user", "hello")
        times: dict[str, list[float]] = {name: [] for name in COMMANDS}
        for _ in range(ROUNDS):
            for name, command in COMMANDS.items():
                start = time.perf_counter()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                times[name].append(time.perf_counter() - start)
    bare = statistics.median(times["python -c pass"])
    for name, values in times.items():
        middle = statistics.median(values)
        limit = f"   asked: at most {LIMITS[name]}" if name in LIMITS else ""
        print(f"{name:20} {middle * 1000:7.1f} ms   {middle / bare:5.2f} x bare Python{limit}")


if __name__ == "__main__":
    main()
