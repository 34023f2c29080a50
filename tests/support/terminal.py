"""What a command shows on a terminal."""

import os
import pty
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import IO

from support.command import COMMAND, environment


def on_a_terminal(*arguments: str | Path, home: Path, cwd: Path | None = None, stdout: IO[bytes] | None = None) -> str:
    """What a terminal shows of a command that succeeds; without its output if that goes to the file ``stdout``."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        env=environment(home, {"TERM": "xterm"}),
        stdin=subprocess.DEVNULL,
        stdout=theirs if stdout is None else stdout,
        stderr=theirs,
        cwd=cwd,
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # the end of a terminal is an error on Linux
        while piece := os.read(ours, 65_536):
            shown += piece
    os.close(ours)
    assert child.wait(60) == 0, shown
    return shown.decode()
