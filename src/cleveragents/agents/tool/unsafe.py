"""Tool code as ordinary Python, in a child process with the sandbox's limits: what ``--unsafe`` asks for.

The code can do whatever the user can. It is kept from harming the run that it is part of: its output never mixes
with its result, it ends at its limits, with all that it started, and it is not handed the user's keys.
"""

from __future__ import annotations

import codecs
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from subprocess import PIPE, Popen
from typing import IO, Any

from cleveragents.agents.environment import environment_of_children
from cleveragents.agents.tool.call import Call, wait_for
from cleveragents.agents.tool.guardian import killed_with_us
from cleveragents.agents.tool.limits import SIZE_LIMIT, Limits
from cleveragents.agents.tool.output import Printed, one_line
from cleveragents.errors import CodeError, InvalidValueError
from cleveragents.values.json import dump_json, json_value, load_json

_CHILD = Path(__file__).with_name("unsafe_child.py")
_PACKAGES = Path(__file__).parents[2]
_LONGEST_ANSWER = 2 * SIZE_LIMIT + 1_000
_CHUNK = 65_536
_LONGEST_PIPE = 1_048_576  # bytes that Linux lets a pipe hold


async def run_unsafe(code: str, variables: Mapping[str, Any], limits: Limits, printed: Printed) -> tuple[Any, Any]:
    """What ``code`` left in ``result`` and ``context``: the same as ``run_sandboxed``, outside of the sandbox."""
    if os.name != "posix":
        raise CodeError("--unsafe needs Linux or macOS")
    request = {"code": code, "variables": variables, "size": SIZE_LIMIT, "time": limits.time, "memory": limits.memory}
    match await wait_for(lambda call: _answer(call, dump_json(request).encode(), limits, printed)):
        case ["done", result, context]:
            return json_value(result, "result"), json_value(context, "context")
        case ["refused", str(path), str(reason)]:
            raise InvalidValueError(reason, path)
        case ["failed", "MemoryError", _]:
            raise CodeError(limits.memory_text)
        case ["failed", str(reason), line]:
            raise CodeError(one_line(reason) + (f" (line {line})" if line else ""))
    raise CodeError("the code wrote into the pipe that its result goes through")


def _answer(call: Call, request: bytes, limits: Limits, printed: Printed) -> Any:
    """The child's answer to ``request``, from a child that is gone when this returns, with all it started."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def show(output: bytes) -> None:
        printed.write(decoder.decode(output))

    deadline = time.monotonic() + limits.time
    with _start() as child, killed_with_us(-child.pid):
        try:
            with call.killed_by(lambda: _kill(child)):
                answer = _exchange(child, request, deadline, show)
        finally:
            _kill(child)
            _drain(_pipe(child.stderr), show)
    if answer is None:
        raise CodeError(limits.time_text)
    if not answer and child.returncode < 0:
        raise CodeError(f"the code's process was ended by {signal.Signals(-child.returncode).name}")
    if not answer:
        raise CodeError(f"the code ended its process with exit status {child.returncode}")
    try:
        return load_json(answer)
    except InvalidValueError:
        return None


def _start() -> Popen[bytes]:
    try:
        return Popen(  # noqa: S603 - Python itself, with a script of our own
            [sys.executable, "-I", "-X", "utf8", str(_CHILD), str(_PACKAGES)],
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=environment_of_children(),
            start_new_session=True,
        )
    except OSError as error:
        raise CodeError(f"the code's process cannot start: {error.strerror or error}") from None


def _exchange(child: Popen[bytes], request: bytes, deadline: float, show: Callable[[bytes], None]) -> bytes | None:
    """The line that ``child`` answers ``request`` with; b"" when it ended without, None past the ``deadline``."""
    unsent = memoryview(request)
    answer = bytearray()
    requests, answers, output = _pipe(child.stdin), _pipe(child.stdout), _pipe(child.stderr)
    with DefaultSelector() as selector:
        for pipe, event in ((requests, EVENT_WRITE), (answers, EVENT_READ), (output, EVENT_READ)):
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, event)
        while not answer.endswith(b"\n") and len(answer) <= _LONGEST_ANSWER:
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            for key, _ in selector.select(left):
                if key.fileobj is requests:
                    # A child that ends before it has read everything says so by ending.
                    with suppress(BrokenPipeError):
                        unsent = unsent[os.write(key.fd, unsent[:_CHUNK]) :]
                        if unsent:
                            continue
                    selector.unregister(requests)
                    requests.close()
                elif piece := os.read(key.fd, _CHUNK):
                    if key.fileobj is answers:
                        answer += piece
                    else:
                        show(piece)
                elif key.fileobj is answers:
                    return b""
                else:
                    selector.unregister(output)
    return bytes(answer)


def _kill(child: Popen[bytes]) -> None:
    """End ``child`` and every process it started, but for those that made themselves a session of their own."""
    # A group whose last process has just gone is what was wanted; macOS reports it as not permitted.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


def _drain(output: IO[bytes], show: Callable[[bytes], None]) -> None:
    """Show what is left in a pipe, without waiting for whoever still holds its other end."""
    for _ in range(_LONGEST_PIPE // _CHUNK):
        try:
            piece = os.read(output.fileno(), _CHUNK)
        except BlockingIOError:
            return
        if not piece:
            return
        show(piece)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise TypeError("the process was started without this pipe")
    return pipe
