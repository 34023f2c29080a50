"""The command in a process that has imported its libraries already, which saves a second of the processor's time each.

A server imports them once and forks for each call; the child runs the command as ``python -m cleveragents`` would, with
arguments, an environment, a folder and standard streams of its own, and ends like any other process.
"""

import atexit
import contextlib
import functools
import importlib
import json
import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

AT_START = ("PYTHON", "LC_", "LANG", "COVERAGE")
"""How the variables begin that Python reads once, when it starts."""

LIBRARIES = [
    "anyio._backends._asyncio",
    "cleveragents.agents.llm.client",
    "cleveragents.app",
    "cleveragents.cli.context",
    "cleveragents.cli.run.command",
    "cleveragents.cli.session.group",
    "cleveragents.config.models",
    "cleveragents.sessions.open",
    "cleveragents.sessions.sql.postgresql",
    "cleveragents.sessions.sql.sqlite",
    "cleveragents.streams.router",
    "cleveragents.turns.context",
    "cleveragents.turns.session",
    "genai_prices.data",
    "openai.lib._chat_completion_resources",
    "pydantic_ai.providers.openai",
    "reactivex.operators",
]
"""What most commands import, however late."""


def can_run(env: Mapping[str, str]) -> bool:
    """Whether a process with ``env`` may be one that was started with this process's own environment."""
    changed = {name for name in {*env, *os.environ} if env.get(name) != os.environ.get(name)}
    return hasattr(os, "pidfd_open") and not any(name.startswith(AT_START) for name in changed)


def run(
    arguments: Sequence[str], stdin: bytes, env: Mapping[str, str], cwd: Path | None, timeout: float
) -> "subprocess.CompletedProcess[bytes]":
    """Run ``cleveragents`` with ``arguments`` to its end, as ``subprocess.run`` would."""
    call = json.dumps({"arguments": arguments, "env": dict(env), "cwd": str(cwd or Path.cwd())})
    pipes = [os.pipe() for _ in range(3)]
    ours = (pipes[0][1], pipes[1][0], pipes[2][0])
    theirs = (pipes[0][0], pipes[1][1], pipes[2][1])
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout)
        connection.connect(_server())
        socket.send_fds(connection, [b"."], theirs)
        for stream in theirs:
            os.close(stream)
        connection.sendall(call.encode())
        connection.shutdown(socket.SHUT_WR)
        outputs: list[bytes] = [b"", b""]
        threads = [
            threading.Thread(target=_write, args=(ours[0], stdin), daemon=True),
            *(threading.Thread(target=_read, args=(ours[at + 1], outputs, at), daemon=True) for at in range(2)),
        ]
        for thread in threads:
            thread.start()
        try:
            code = int(connection.recv(64))
        except TimeoutError:
            raise subprocess.TimeoutExpired(["cleveragents", *arguments], timeout) from None
    for thread in threads[1:]:
        thread.join(timeout)
    return subprocess.CompletedProcess(["cleveragents", *arguments], code, *outputs)


def _write(stream: int, content: bytes) -> None:
    try:
        with open(stream, "wb") as pipe:
            pipe.write(content)
    except BrokenPipeError:
        pass  # the command did not read all of it


def _read(stream: int, outputs: list[bytes], at: int) -> None:
    with open(stream, "rb") as pipe:
        outputs[at] = pipe.read()


@functools.cache
def _server() -> str:
    """The address of this process's server, which ends with this process."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("")  # any free name, which is no file
        listener.listen(64)
        # Its standard streams are pipes, as those of a command are.
        server = subprocess.Popen(
            [sys.executable, __file__, str(listener.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[listener.fileno()],
        )
        atexit.register(server.communicate)
        address: str = listener.getsockname()
    return address


# --- the server ----------------------------------------------------------------------------------------------


def _serve(listener: socket.socket) -> None:
    """Fork for each call and tell its exit code; returns in each child, and never in the server."""
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ)
    waiting.register(0, selectors.EVENT_READ)
    while True:
        for key, _ in waiting.select():
            if key.fd == 0:
                os._exit(0)
            if key.fileobj is listener:
                if _forked(listener, waiting):
                    return
                continue
            pid, connection = key.data
            waiting.unregister(key.fd)
            os.close(key.fd)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            # Whoever asked may have gone away.
            with contextlib.suppress(OSError):
                connection.sendall(str(code).encode())
            connection.close()


def _forked(listener: socket.socket, waiting: selectors.BaseSelector) -> bool:
    """Whether this is the child of the next call now, which has its streams, arguments, folder and environment."""
    connection, _ = listener.accept()
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    call = json.loads(b"".join(iter(lambda: connection.recv(1 << 16), b"")))
    pid = os.fork()
    if pid:
        for stream in streams:
            os.close(stream)
        waiting.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, connection))
        return False
    for standard, stream in enumerate(streams):
        os.dup2(stream, standard)
        os.close(stream)
    connection.close()
    for key in [*waiting.get_map().values()]:
        if key.fileobj is listener:
            listener.close()
        elif key.fd != 0:
            os.close(key.fd)
            key.data[1].close()
    waiting.close()
    os.environ.clear()
    os.environ.update(call["env"])
    time.tzset()
    os.chdir(call["cwd"])
    sys.path[0] = call["cwd"]
    sys.argv[1:] = call["arguments"]
    return True


def _import_libraries() -> None:
    for module in LIBRARIES:
        importlib.import_module(module)


def _run_to_its_end() -> None:
    """The command, and what Python does at its end, but for taking all the libraries apart."""
    try:
        main()
    except SystemExit as ending:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ending.code if isinstance(ending.code, int) else 0)


if __name__ == "__main__":
    import gc

    from cleveragents.__main__ import main

    _import_libraries()
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    _run_to_its_end()
