import subprocess
import sys

import pytest

from cleveragents import ContextManager


@pytest.fixture
def root(tmp_path):
    return tmp_path / "contexts"


@pytest.fixture
def context(root):
    return ContextManager("talk", root)


@pytest.fixture
def told():
    """What was told of damage to managers that are made with ``on_damage=told.append``."""
    return []


@pytest.fixture
def start():
    """Start a Python program as a process of its own; all of them are gone when the test ends."""
    started = []

    def starting(program, *arguments, **options):
        process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        started.append(process)
        return process

    yield starting
    for process in started:
        process.kill()
        process.communicate()
