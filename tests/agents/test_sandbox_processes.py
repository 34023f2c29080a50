"""The processes that code runs in: when they start, whom they serve, and that none is left behind."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from cleveragents import Message, ToolAgent
from cleveragents.agents.tool.sandbox import evaluate
from cleveragents.errors import ToolError
from support.tools import call, everywhere, failure

PATIENCE = 60  # seconds until a test gives up on what should happen at once

START = """
import asyncio, os, sys
from pathlib import Path
from cleveragents import Message, ToolAgent

def children():
    return [pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()]

def run(code, unsafe=False, time_limit=300):
    return asyncio.run(ToolAgent("tool", code, unsafe=unsafe, time_limit=time_limit).process(Message("")))
"""


def script(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", START + code, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process):
    """What a script printed, after it has ended well and without a word on standard error."""
    try:
        output, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert errors == ""
    assert process.returncode == 0
    return output


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def all_end(pids):
    patience = time.monotonic() + PATIENCE
    while any(map(running, pids)):
        if time.monotonic() > patience:
            return False
    return True


def workers():
    return [int(pid) for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()]


@everywhere
def test_tools_work_in_one_event_loop_after_another(unsafe):
    for number in range(3):
        assert call("result = message + 1", number, unsafe=unsafe).content == number + 1


@everywhere
def test_tools_work_in_event_loops_side_by_side(unsafe):
    results = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(call("result = message * 2", n, unsafe=unsafe).content))
        for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(results) == [0, 2, 4, 6, 8, 10]


def test_a_couple_of_workers_serve_any_number_of_calls():
    code = """
async def main():
    tool = ToolAgent("tool", "result = message")
    seen = set()
    for _ in range(5):
        await asyncio.gather(*(tool.process(Message(n)) for n in range(20)))
        seen |= {pid for pid in children() if "monty" in Path(f"/proc/{pid}/comm").read_text()}
    print(len(seen))

asyncio.run(main())
"""
    assert int(finished(script(code))) in {1, 2}


@everywhere
def test_many_runs_end_without_noise_and_leave_nothing_behind(unsafe):
    code = "print(run('result = 1', unsafe=bool(sys.argv[1])).content, *children())"
    for _ in range(10):
        output = finished(script(code, "1" if unsafe else ""))
        content, *pids = output.split()
        assert content == "1"
        assert all_end(pids)


def test_a_run_that_ends_in_the_middle_of_printing_ends_without_noise():
    code = "print(run('for i in range(1000): print(i)\\nresult = 2').content)"
    for _ in range(5):
        assert finished(script(code)) == "2\n"


def test_running_out_of_memory_writes_nothing_to_standard_error():
    code = """
from cleveragents.errors import ToolError
for code in [
    "x = {}\\nwhile True: x[len(x)] = 'a' * 100",
    "x = ('a ' * 10 ** 8).split()",
    "x = '%s' % ('x' * 250_000_000)",
]:
    try:
        run(code)
    except ToolError as error:
        print(error)
"""
    output = finished(script(code))
    assert output.count("agent tool: stopped at the memory limit of 256 MB") == 3


@pytest.mark.parametrize(
    ("code", "unsafe"),
    [
        ("while True: pass", False),
        ("import time\ntime.sleep(300)", False),
        ("while True: print('x' * 1000)", False),
        ("while True: pass", True),
        ("import subprocess\nsubprocess.run(['sleep', '300'])", True),
        ("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", True),
    ],
)
def test_ctrl_c_ends_the_run_and_the_code_at_once(code, unsafe):
    runner = """
async def main():
    tool = ToolAgent("tool", sys.argv[1], unsafe=bool(sys.argv[2]), time_limit=300)
    task = asyncio.create_task(tool.process(Message("")))
    while not children():
        await asyncio.sleep(0)
    print(*children(), flush=True)
    await task

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""
    process = script(runner, code, "1" if unsafe else "")
    pids = process.stdout.readline().split()
    process.send_signal(signal.SIGINT)
    assert finished(process) == "interrupted\n"
    assert all_end(pids)


@everywhere
def test_a_cancelled_call_ends_its_process(unsafe):
    runner = """
async def main():
    tool = ToolAgent("tool", "while True: pass", unsafe=bool(sys.argv[1]), time_limit=300)
    task = asyncio.create_task(tool.process(Message("")))
    while not children():
        await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled")
    print((await ToolAgent("tool", "result = 'next'", unsafe=bool(sys.argv[1])).process(Message(""))).content)

asyncio.run(main())
"""
    assert finished(script(runner, "1" if unsafe else "")) == "cancelled\nnext\n"


@everywhere
def test_calls_that_wait_for_their_turn_can_be_cancelled_too(unsafe):
    async def main():
        endless = ToolAgent("tool", "while True: pass", unsafe=unsafe, time_limit=300)
        tasks = [asyncio.create_task(endless.process(Message(""))) for _ in range(10)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
        return await ToolAgent("tool", "result = 1", unsafe=unsafe, time_limit=60).process(Message(""))

    assert asyncio.run(main()).content == 1


def test_a_worker_that_dies_is_one_failed_call():
    killed = set()

    async def main():
        task = asyncio.create_task(ToolAgent("tool", "while True: pass", time_limit=300).process(Message("")))
        while not task.done():
            for pid in workers():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            await asyncio.sleep(0)
        with pytest.raises(ToolError) as caught:
            await task
        return caught.value

    assert asyncio.run(main()).reason == "the sandbox's process died; the next call starts a new one"
    assert all_end(killed)
    assert call("result = 1").content == 1


def test_workers_that_die_while_nobody_uses_them_are_replaced():
    for number in range(3):
        assert call("result = message", number).content == number
        idle = workers()
        for pid in idle:
            os.kill(pid, signal.SIGINT)  # what a Ctrl-C at a prompt does to them
        assert all_end(idle)


BUSY = """
def busy(pid):
    # It has computed longer than it takes to start.
    try:
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False  # it has ended since it was listed
    return int(times[11]) + int(times[12]) >= 50

def begin(code, unsafe=""):
    import threading
    threading.Thread(target=run, args=(code, bool(unsafe), 86_400), daemon=True).start()
    while not any(map(busy, children())):
        pass
    print(*children(), flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("before", ["", "run('result = 1')"], ids=["at first", "later"])
def test_a_killed_program_takes_its_sandboxed_code_with_it_whatever_time_it_has_left(before):
    process = script(f"{BUSY}\n{before}\nbegin('while True: pass')")
    pids = process.stdout.readline().split()
    process.kill()
    process.communicate(timeout=PATIENCE)
    assert pids
    assert all_end(pids)


def test_a_killed_program_takes_its_unsafe_code_with_it_and_all_that_this_started(tmp_path):
    code = f"""
import os, pathlib, signal, subprocess
for number in set(signal.Signals) - {{signal.SIGKILL, signal.SIGSTOP}}:
    signal.signal(number, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "1000"])
pathlib.Path({str(tmp_path / "pids")!r}).write_text(f"{{os.getpid()}} {{child.pid}}", encoding="utf-8")
while True:
    pass
"""
    process = script(f"{BUSY}\nbegin(sys.argv[1], 'unsafe')", code)
    pids = process.stdout.readline().split()
    started = (tmp_path / "pids").read_text(encoding="utf-8").split()
    process.kill()
    process.communicate(timeout=PATIENCE)
    assert set(started) & set(pids)
    assert all_end([*pids, *started])


def test_code_ends_with_its_program_though_somebody_killed_what_watches_over_it():
    code = """
run("result = 1")
(shell,) = [pid for pid in children() if Path(f"/proc/{pid}/comm").read_text() != "monty\\n"]
os.kill(int(shell), 9)
while Path(f"/proc/{shell}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
    pass
begin("while True: pass")
"""
    process = script(BUSY + code)
    pids = process.stdout.readline().split()
    process.kill()
    process.communicate(timeout=PATIENCE)
    assert pids
    assert all_end(pids)


def test_code_ends_with_its_program_though_a_fork_of_that_lives_on():
    code = """
run("result = 1")
pid = os.fork()
if pid == 0:
    os.read(0, 1)
    os._exit(0)
print(pid, flush=True)
begin("while True: pass")
"""
    process = script(BUSY + code)
    fork = process.stdout.readline().strip()
    pids = set(process.stdout.readline().split()) - {fork}
    process.kill()
    process.wait(PATIENCE)
    assert pids
    assert all_end(pids)
    assert running(fork)
    process.communicate(timeout=PATIENCE)


def test_what_watches_over_code_ends_with_a_program_that_ends_by_itself():
    code = """
run("result = 1")
print(*children())
"""
    pids = finished(script(code)).split()
    assert len(pids) == 2
    assert all_end(pids)


def test_a_fork_of_a_program_that_ran_code_is_told_so_and_does_no_harm():
    code = """
from cleveragents.errors import ToolError
print(run("result = 'before'").content, flush=True)
pid = os.fork()
if pid == 0:
    try:
        run("result = 1")
    except ToolError as error:
        print(error)
    print(run("result = 'unsafe'", unsafe=True).content, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
print(run("result = 'after'").content)
"""
    before, told, unsafe, after = finished(script(code)).splitlines()
    assert (before, unsafe, after) == ("before", "unsafe", "after")
    assert told.endswith("cannot run in a fork of a process that ran some; spawn the process instead")


def test_a_fork_that_is_the_first_to_run_code_can():
    code = """
pid = os.fork()
if pid:
    os.waitpid(pid, 0)
print(run("result = 1").content, flush=True)
if pid == 0:
    os._exit(0)
"""
    assert finished(script(code)) == "1\n1\n"


def test_a_sandbox_that_cannot_start_is_one_line(tmp_path):
    code = """
from cleveragents.errors import ToolError
try:
    run("result = 1")
except ToolError as error:
    print(error)
"""
    environment = {**os.environ, "MONTY_BIN": str(tmp_path / "nothing")}
    done = subprocess.run(
        [sys.executable, "-c", START + code],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
        timeout=PATIENCE,
    )
    assert done.stderr == ""
    assert done.stdout.startswith("agent tool: the sandbox cannot start: ")
    assert done.stdout.count("\n") == 1


def test_standard_error_may_be_closed():
    code = "os.close(2)\nprint(run('result = 1').content)"
    assert finished(script(code)) == "1\n"


def test_code_never_sees_what_an_expression_or_another_tool_left():
    call("secret = 'of a tool'\ncontext['k'] = 1")
    asyncio.run(evaluate("(secret := 'of an expression')", {}))
    assert failure("result = secret") == "NameError: name 'secret' is not defined (line 1)"
