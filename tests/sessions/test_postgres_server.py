"""The PostgreSQL server of the tests leaves nothing behind."""

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from support.command import environment

PROGRAM = """
import os, signal
from support.postgres import PostgresServer
server = PostgresServer()
print(server.process_id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_test_run_that_is_killed_leaves_no_server_behind(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment(tmp_path, {"PYTHONPATH": str(Path(__file__).parents[1])}),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    server = int(done.stdout)
    # One that is gone already is what is asked for.
    with suppress(ProcessLookupError):
        assert select.select([os.pidfd_open(server)], [], [], 60)[0]
