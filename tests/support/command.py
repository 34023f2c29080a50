"""The command line as a user has it: a process of its own, with a home of its own."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from support import preloaded
from support.campaign import SOAK

COMMAND = [sys.executable, "-m", "cleveragents"]


C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""The changes to an environment after which Python takes nothing for UTF-8 by itself."""


def environment(home: Path, changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a child: this one's, with its own store, without keys, and with ``changes``."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_TOKEN"))}
    return kept | {"CLEVERAGENTS_HOME": str(home), "NO_COLOR": "1"} | dict(changes or {})


def command(
    *arguments: str | Path,
    home: Path,
    stdin: str | bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 120,
) -> subprocess.CompletedProcess[str]:
    """Run ``cleveragents`` with ``arguments`` to its end, in ``make test-all`` from Python's start on.

    Output is decoded as UTF-8.
    """
    content = stdin.encode() if isinstance(stdin, str) else stdin
    variables = environment(home, env)
    if not SOAK and preloaded.can_run(variables):
        done = preloaded.run([*map(str, arguments)], content, variables, cwd, timeout)
    else:
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            input=content,
            capture_output=True,
            env=variables,
            cwd=cwd,
            timeout=timeout,
            check=False,
        )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def ok(done: subprocess.CompletedProcess[str]) -> str:
    """What a command that succeeded printed."""
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def one_line(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The one line on stderr of a command that ended with ``code`` and printed nothing."""
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return lines[0]
