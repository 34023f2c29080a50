"""What is acknowledged has been synced: the system calls themselves, seen by strace."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cleveragents import open_sessions
from support.context_writer import WRITER, assert_flushed


def test_every_change_of_a_context_is_flushed_before_it_is_acknowledged(tmp_path):
    calls = "trace=write,fsync,fdatasync,rename,renameat,renameat2"
    done = subprocess.run(
        ["strace", "-f", "-y", "-s", "200", "-e", calls, sys.executable, "-c", WRITER, str(tmp_path)],
        capture_output=True,
        check=True,
        text=True,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert_flushed(done.stderr.splitlines(), tmp_path)


def acknowledged_syncs(trace):
    """For each acknowledgement in a trace of system calls, the files that were synced since the one before."""
    found: list[set[str]] = []
    synced: set[str] = set()
    for line in trace.splitlines():
        sync = re.search(r"f(?:data)?sync\(\d+<([^>]*)>", line)
        if sync:
            synced.add(Path(sync[1]).name)
        elif re.search(r'write\(1[<,].*"acknowledged', line):
            found.append(synced)
            synced = set()
    return found


@pytest.mark.parametrize(("mode", "file"), [("wal", "sessions.db-wal"), ("delete", "sessions.db")])
def test_an_append_is_on_disk_before_it_is_acknowledged(tmp_path, mode, file):
    url = f"sqlite:///{tmp_path}/sessions.db?journal_mode={mode}"
    with open_sessions(url) as sessions:
        session_id = sessions.create().session_id
    program = (
        "import os, sys; from cleveragents import open_sessions\n"
        "with open_sessions(sys.argv[1]) as sessions:\n"
        "    for _ in range(5):\n"
        "        sessions.append(sys.argv[2], 'user', 'x'); os.write(1, b'acknowledged\\n')\n"
    )
    command = [sys.executable, "-c", program, url, session_id]
    trace = tmp_path / "trace"
    tracing = ["strace", "-f", "-y", "-o", str(trace), "-e", "trace=fsync,fdatasync,write"]
    subprocess.run([*tracing, *command], check=True, capture_output=True)
    syncs = acknowledged_syncs(trace.read_text(encoding="utf-8", errors="replace"))
    assert len(syncs) == 5
    for synced in syncs:
        assert file in synced
