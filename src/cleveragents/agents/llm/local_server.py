"""The process that runs llama.cpp for ``local``: a script of its own, which imports nothing of this package.

Inside the program, a user would lose three things: a Ctrl-C while weights load (that holds Python's lock), the whole
run to a damaged file (llama.cpp may end its process), and half a minute at the end of a run that was interrupted (so
long does a server that is answering take to stop). All of that is harmless in a process that can be killed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path


def main() -> None:
    """Serve what the first line of stdin asks for, say where on stdout, and end with stdin.

    When the weights cannot be loaded, it ends without a word there; what llama.cpp says of it is on stderr.
    """
    # A Ctrl-C goes to every process of the terminal; this one ends when its parent does.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _leave_no_core()
    request = json.loads(sys.stdin.readline())
    # The parent's packages, in the parent's order; not what happens to lie beside this script.
    sys.path[:] = request["sys_path"]
    # It has no types for a checker, and need not be installed.
    xllamacpp = import_module("xllamacpp")

    params = xllamacpp.CommonParams()
    params.model.path = request["weights"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [request["key"]]
    params.n_ctx = request["context_tokens"]
    # How many tokens of a prompt are read between two words on how far that is.
    params.n_batch = 256
    params.verbosity = 1  # errors alone
    params.offline = True
    params.ui = False
    params.endpoint_slots = False
    params.warmup = False
    # Half of the cores: threads that have to wait for a busy core make an answer ten times slower, not faster.
    threads = max(1, _cores() // 2)
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    # Without these two an answer may depend on what was asked before it, and does depend on chance.
    params.cache_prompt = False
    params.sampling.temp = 0.0
    # How soon a question that nobody waits for any more is given up.
    params.sse_ping_interval = 1
    try:
        server = xllamacpp.Server(params)
    except RuntimeError:
        return
    with Path(os.devnull).open("wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    sys.stdout.write(json.dumps({"url": server.listening_address}) + "\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)


def _leave_no_core() -> None:
    """Keep llama.cpp, which aborts when memory runs out, from writing all of its memory into the user's folder."""
    with suppress(ImportError):  # a system without such files
        resource = import_module("resource")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    main()
