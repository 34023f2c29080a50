"""What ``--unsafe`` allows, and what it still keeps apart: output, keys, processes and the run itself."""

import os
import sys
import time
from pathlib import Path

import pytest

from support.tools import call, failure, printed


def running(pid):
    """Whether a process is there. One that has ended and that nobody has collected yet is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def all_end(pids):
    """Whether all processes end; a killed one needs a moment for it."""
    patience = time.monotonic() + 10
    while any(map(running, pids)):
        if time.monotonic() > patience:
            return False
    return True


def test_it_is_ordinary_python():
    code = """
import os, string, uuid
class Shouting(str):
    def loud(self):
        return self.upper() + "!"
def numbers():
    yield from range(3)
del context["old"]
result = [Shouting(message).loud(), list(numbers()), str(uuid.UUID(int=1)), os.sep]
"""
    reply = call(code, "hello", {"old": 1}, unsafe=True)
    assert reply.content == ["HELLO!", [0, 1, 2], "00000000-0000-0000-0000-000000000001", "/"]
    assert reply.removed == (("old",),)


def test_c95_nothing_that_writes_to_the_standard_streams_reaches_the_result():
    code = """
import os, subprocess, sys, warnings
print('{"fake": 1}')
print("to stderr", file=sys.stderr)
os.write(1, b'["done", 1, {}]\\n')
subprocess.run([sys.executable, "-c", "print('from a child')"])
os.system("echo from a shell; echo '{}' >&1; echo and its stderr >&2")
if os.fork() == 0:
    print("from a fork")
    os._exit(0)
os.wait()
warnings.warn("careful")
result = {"true": [1, 2]}
"""
    reply, text = printed(code, unsafe=True)
    assert reply.content == {"true": [1, 2]}
    for said in ['{"fake": 1}', "to stderr", "from a child", "from a shell", "its stderr", "from a fork", "careful"]:
        assert said in text


def test_c92_ending_the_process_outright_is_a_failed_tool():
    assert failure("import os\nos._exit(3)", unsafe=True) == "the code ended its process with exit status 3"
    assert failure("import os\nos._exit(0)", unsafe=True) == "the code ended its process with exit status 0"
    reason = failure("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", unsafe=True)
    assert reason == "the code's process was ended by SIGSEGV"
    assert call("result = 1", unsafe=True).content == 1


def test_c92_children_left_behind_do_not_keep_a_dead_process_alive():
    code = """
import os, sys
if os.fork() == 0:
    import time
    time.sleep(100)
print(os.getpid())
sys.stdout.flush()
os._exit(3)
"""
    error, _ = printed(code, unsafe=True)
    assert error.reason == "the code ended its process with exit status 3"


def test_all_that_the_code_started_ends_with_it():
    code = """
import os, subprocess, threading, time
context["pids"] = [subprocess.Popen(["sleep", "100"]).pid for _ in range(3)]
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        time.sleep(100)
    context["pids"].append(pid)
threading.Thread(target=time.sleep, args=(100,)).start()
result = os.getpid()
"""
    reply = call(code, unsafe=True)
    assert all_end([reply.content, *reply.changes["pids"]])


def test_all_that_the_code_started_ends_at_the_time_limit_too():
    code = """
import os, subprocess, sys
for _ in range(3):
    print(subprocess.Popen(["sleep", "100"]).pid)
print(os.getpid(), flush=True)
while True:
    pass
"""
    error, text = printed(code, unsafe=True, time_limit=2)
    assert error.reason == "stopped at the time limit of 2 s"
    pids = text.split()
    assert len(pids) == 4
    assert all_end(pids)


def test_processes_that_multiply_end_at_the_time_limit():
    code = """
import os, sys
os.write(1, b"%d\\n" % os.getpid())
for _ in range(5):
    os.fork()
os.write(1, b"%d\\n" % os.getpid())
while True:
    pass
"""
    error, text = printed(code, unsafe=True, time_limit=2)
    assert error.reason == "stopped at the time limit of 2 s"
    assert len(text.split()) > 2
    assert all_end(text.split())


def test_a_process_that_left_its_session_is_not_waited_for():
    code = """
import os, subprocess
child = subprocess.Popen(["sleep", "100"], start_new_session=True)
result = child.pid
"""
    reply = call(code, unsafe=True)
    assert running(reply.content)
    os.kill(reply.content, 9)


def test_keys_of_the_user_are_not_handed_over(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("DATABASE_PASSWORD", "hunter2")
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    monkeypatch.setenv("LC_TIME", "C")
    seen = call("import os\nresult = dict(os.environ)", unsafe=True).content
    assert seen["TZ"] == "Asia/Kolkata"
    assert seen["LC_TIME"] == "C"
    assert seen["PATH"] == os.environ["PATH"]
    # LC_CTYPE is set by Python itself where there is no locale.
    assert set(seen) <= {
        "HOME",
        "LANG",
        "LC_CTYPE",
        "LC_TIME",
        "LD_LIBRARY_PATH",
        "LOGNAME",
        "PATH",
        "TMPDIR",
        "TZ",
        "USER",
    }


def test_c25_bytes_that_are_no_text_become_replacement_characters():
    reply = call(r"result = b'caf\xe9'.decode('utf-8', 'surrogateescape')", unsafe=True)
    assert reply.content == "caf�"
    error, text = printed(
        r"text = b'caf\xe9'.decode('utf-8', 'surrogateescape')" + "\nprint(text)\nraise ValueError(text)", unsafe=True
    )
    assert error.reason == "ValueError: caf� (line 3)"
    assert text == "caf\\udce9\n"
    _, text = printed(r"import os; os.write(1, b'caf\xe9 \xc3')", unsafe=True)
    assert text == "caf� "


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "POSIX", "PYTHONIOENCODING": "ascii"}])
def test_c28_text_is_the_same_under_any_locale(monkeypatch, locale):
    for name, value in locale.items():
        monkeypatch.setenv(name, value)
    reply, text = printed("print(context['t'])\nresult = context['t']", context={"t": "Привет 🎉"}, unsafe=True)
    assert reply.content == "Привет 🎉"
    assert text == "Привет 🎉\n"


def test_c34_a_uuid_becomes_text():
    code = "import uuid, enum\nclass E(enum.Enum):\n    A = 'a'\nresult = [uuid.UUID(int=1), E.A]"
    assert call(code, unsafe=True).content == ["00000000-0000-0000-0000-000000000001", "a"]


def test_c35_numbers_of_numpy_become_plain_numbers():
    code = """
import numpy
context["score"] = numpy.float64(0.5)
context["n"] = numpy.int64(3)
context["yes"] = numpy.bool_(True)
"""
    reply = call(code, unsafe=True, memory_limit=2_000_000_000)
    assert reply.changes == {"score": 0.5, "n": 3, "yes": True}
    assert [type(value) for value in reply.changes.values()] == [float, int, bool]


def test_c35_a_fraction_is_refused_by_its_key():
    reason = failure("from fractions import Fraction\ncontext['f'] = Fraction(1, 3)", unsafe=True)
    assert reason == "context.f: a value of type Fraction cannot be stored as JSON"


def test_code_that_writes_into_the_result_pipe_is_refused():
    code = "import os\nfor fd in range(3, 20):\n    try: os.write(fd, b'{\"x\": 1}\\n')\n    except OSError: pass\n"
    assert failure(code, unsafe=True) == "the code wrote into the pipe that its result goes through"
    endless = """
import os
while True:
    for fd in range(3, 20):
        try:
            os.write(fd, b'x' * 60_000)
        except OSError:
            pass
"""
    assert failure(endless, unsafe=True) == "the code wrote into the pipe that its result goes through"


def test_code_that_closes_everything_is_a_failed_tool():
    assert failure("import os\nos.closerange(0, 100)\nresult = 1", unsafe=True).startswith("the code")


def test_code_that_breaks_its_own_streams_still_gives_its_result():
    assert call("import sys\nsys.stdout.close()\nsys.stderr = None\nresult = 1", unsafe=True).content == 1


def test_the_code_cannot_wait_for_input():
    assert call("import sys\nresult = sys.stdin.read()", unsafe=True).content == ""


@pytest.mark.parametrize("raised", ["ValueError", "KeyboardInterrupt", "SystemExit(3)"])
def test_an_exception_that_cannot_be_shown_is_still_a_failed_tool(raised):
    code = f"class Odd(Exception):\n    def __str__(self):\n        raise {raised}\n\nraise Odd"
    error, text = printed(code, unsafe=True)
    assert (error.reason, text) == ("Odd (line 5)", "")


def test_a_stream_that_ends_the_program_when_flushed_does_not():
    code = "import sys\nclass Odd:\n    def flush(self):\n        raise SystemExit\n\nsys.stdout = Odd()\nresult = 1"
    assert call(code, unsafe=True).content == 1


@pytest.mark.slow
def test_deep_recursion_outside_of_python_is_a_failed_tool():
    code = "import sys\nsys.setrecursionlimit(10**9)\ndef f():\n    return f()\n\nf()"
    assert failure(code, unsafe=True)
    assert call("result = 1", unsafe=True).content == 1


def test_a_missing_interpreter_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert failure("result = 1", unsafe=True) == "the code's process cannot start: No such file or directory"


def test_it_is_off_unless_asked_for():
    assert "--unsafe" in failure("import subprocess")
