"""The child process of ``--unsafe``: a script that reads one request, runs its code, and answers with one line."""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

_FILE = "<tool>"
_LONGEST_REASON = 2_000


def main() -> None:
    """Answer the request on standard input, by what was standard output."""
    request = json.loads(sys.stdin.buffer.read())
    answers = _set_apart()
    # For the case that not only the parent is gone, but also what ends this process in its place.
    signal.setitimer(signal.ITIMER_REAL, request["time"] + 1)
    _limit_memory(request["memory"])
    answer = _run(request["code"], request["variables"], request["size"])
    for stream in (sys.stdout, sys.stderr):
        with suppress(BaseException):  # the code may have put anything there
            stream.flush()
    with os.fdopen(answers, "wb") as pipe:
        pipe.write(answer.encode() + b"\n")


def _set_apart() -> int:
    """A copy of standard output that nothing else writes to; from here on, standard output is standard error."""
    answers = os.dup(1)
    os.dup2(2, 1)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    # A program that the code starts does not get it anyway. A fork would keep the parent waiting for its end.
    os.register_at_fork(after_in_child=lambda: os.close(answers))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace", line_buffering=True)
    return answers


def _limit_memory(limit: int) -> None:
    """Let this process use ``limit`` bytes more than it does now."""
    status = Path("/proc/self/status")
    used = 64_000_000  # a generous guess where the system does not tell
    if status.exists():
        lines = status.read_text(encoding="utf-8").splitlines()
        used = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:"))
    hardest = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = used + limit if hardest == resource.RLIM_INFINITY else min(used + limit, hardest)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _run(code: str, variables: dict[str, Any], size: int) -> str:
    """The answer, as JSON: what ``code`` left, why that is refused, or how it failed."""
    sys.path.append(sys.argv[1])
    from cleveragents.errors import InvalidValueError
    from cleveragents.values.json import dump_json, json_value
    from cleveragents.values.text import clean_text

    names = {**variables, "result": None, "__name__": "__main__"}
    try:
        exec(compile(code, _FILE, "exec", dont_inherit=True), names)  # noqa: S102 - what --unsafe is for
        done = []
        for name in ("result", "context"):
            text = dump_json(json_value(names.get(name), name))
            if len(text.encode()) > size:
                return dump_json(["refused", name, f"larger than {size // 1_000_000} MB"])
            done.append(text)
    except InvalidValueError as error:
        return dump_json(["refused", error.path, error.reason])
    except BaseException as error:  # noqa: BLE001 - an exit is a failure too
        reason, line = _failure(error)
        return dump_json(["failed", clean_text(reason), line])
    return f'["done",{done[0]},{done[1]}]'


def _failure(error: BaseException) -> tuple[str, int | None]:
    """What ``error`` says, in its own words, and the line of the code where it was raised."""
    if isinstance(error, MemoryError):
        return "MemoryError", None
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == _FILE else None
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == _FILE:
            line = frame.tb_lineno
        frame = frame.tb_next
    try:
        text = str(error.msg if isinstance(error, SyntaxError) else error)[:_LONGEST_REASON]
    except BaseException:  # noqa: BLE001 - an exception of the code's own making
        text = ""
    name = type(error).__name__
    return f"{name}: {text}" if text else name, line


if __name__ == "__main__":
    main()
