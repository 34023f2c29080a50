"""Kills a process at any moment, again and again, and tells what it had acknowledged by then.

The killer forks, so it is a program of its own: no threads, no open database, no sandbox that a fork could not share.
A test gives it as text what the process does and what must be found after a kill::

    PROGRAM = '''
    from support.killer import lives
    def live(life, acknowledge): ...
    for life, acknowledged in lives(int(sys.argv[1]), live): ...
    print(json.dumps(wrong))
    '''
    assert run_killer(PROGRAM, 300, home=tmp_path) == []
"""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from support.command import environment

TESTS = Path(__file__).parents[1]

Acknowledge = Callable[[bytes], object]


def lives(
    kills: int,
    live: Callable[[int, Acknowledge], object],
    *,
    after: Sequence[int],
    rounds: int,
) -> Iterator[tuple[int, bytes]]:
    """Run ``live`` in ``kills`` forks, one after the other, and give the number of each and what it acknowledged.

    ``live`` is given its number and what it acknowledges single bytes with, and goes on for ever. It is killed after
    one of ``after`` acknowledgements and fewer than ``rounds`` rounds of nothing: moments of progress, not of time, so
    that they fall within the work on any machine. A life that ends by itself ends the program.
    """
    chance = random.Random("seed")  # noqa: S311 - any moments will do, if they are the same again
    for life in range(kills):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                live(life, partial(os.write, writing))
            except BaseException as error:  # noqa: BLE001 - whatever it is, the parent's work is not gone on with
                os.write(2, f"life {life}: {error!r}\n".encode())
            finally:
                os._exit(1)
        os.close(writing)
        acknowledged = b"".join(os.read(reading, 1) for _ in range(chance.choice(after)))
        for _ in range(chance.randrange(rounds)):
            pass
        os.kill(child, signal.SIGKILL)
        if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            sys.exit(f"life {life} ended by itself")
        while more := os.read(reading, 65_536):
            acknowledged += more
        os.close(reading)
        yield life, acknowledged


def run_killer(program: str, *arguments: object, home: Path) -> Any:
    """What ``program`` prints, as JSON, when it has ended well and said nothing on stderr."""
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        env=environment(home, {"PYTHONPATH": str(TESTS)}),
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", done.stderr
    return json.loads(done.stdout)
