"""Standard streams that are closed, or take nothing: one line or none, and the right exit code."""

import subprocess
import sys

import pytest

from support.command import environment


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("context list >&-", 0, ""),
        ("context show nobody >&-", 3, "nobody"),
        ("context show nobody 2>&-", 3, ""),
        ("context show nobody 2>/dev/full", 3, ""),
        ("context delete notes <&-", 2, "--yes"),
        ("context list >/dev/full", 1, "standard output"),
        ("context show notes >/dev/full", 1, "standard output"),
        ("context show notes --format json >/dev/full", 1, "standard output"),
        ("--help >/dev/full", 1, "standard output"),
        ("context list >&- 2>&- <&-", 0, ""),
    ],
)
def test_a_stream_that_is_closed_or_full(notes, home, arguments, code, said):
    command = f"{sys.executable} -m cleveragents {arguments}"
    done = subprocess.run(["bash", "-c", command], env=environment(home), capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert len(done.stderr.splitlines()) == (1 if said else 0)
    assert said in done.stderr
    assert notes.messages
