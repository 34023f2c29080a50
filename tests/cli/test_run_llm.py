"""``run`` with an llm: streaming, interruption, and every way in which a server can let one down."""

import json
import os
import pty
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import jsonschema
import pytest

from cleveragents import ContextManager
from support.command import COMMAND, command, environment, one_line
from support.scripted_llm import calls, cuts, fails, hangs, says, sends

SECRET = "sk-very-secret-key-0123456789"  # noqa: S105 - made up, to look for it where it must not be


@pytest.fixture
def config(tmp_path, scripted_llm):
    path = tmp_path / "assistant.yaml"
    path.write_text(
        f"""
agents:
  assistant:
    type: llm
    llm: openai:any
    base_url: {scripted_llm.url}
    api_key_env: SOME_KEY
    tools: [count]
  count:
    type: tool
    code: result = len(message)
""",
        encoding="utf-8",
    )
    return path


ENV = {"SOME_KEY": SECRET}


def stored(home):
    return ContextManager.open("talk", root=home / "contexts")


def on_a_terminal(home, *arguments):
    """The command with a real pseudo-terminal as its stdout and stdin."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdin=theirs, stdout=theirs, stderr=theirs, env=environment(home, ENV)
    )
    os.close(theirs)
    return child, ours


def read_until(terminal, text):
    seen = b""
    # The end of the terminal is an error to the reader.
    with suppress(OSError):
        while text not in seen and (piece := os.read(terminal, 1000)):
            seen += piece
    return seen


def test_an_answer_is_shown_on_a_terminal_as_it_arrives(home, config, scripted_llm):
    scripted_llm.script(says(["Once upon", " a time"], then=hangs))
    child, terminal = on_a_terminal(home, "run", config, "Tell me.")
    # The server is still talking.
    assert b"Once upon a time" in read_until(terminal, b"a time")
    child.send_signal(signal.SIGINT)
    read_until(terminal, b"no such text")
    assert child.wait(timeout=20) == 130
    os.close(terminal)


def test_without_a_prompt_on_a_terminal_one_line_says_what_to_do(home, config):
    child, terminal = on_a_terminal(home, "run", config)
    said = read_until(terminal, b"no such text").decode()
    assert child.wait(timeout=20) == 2
    os.close(terminal)
    assert len(said.splitlines()) == 1
    assert "no prompt" in said


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_answer_is_kept_and_the_next_run_works(home, config, scripted_llm, signum):
    scripted_llm.script(says(["Once upon", " a time"], then=hangs))
    child = subprocess.Popen(
        [*COMMAND, "run", str(config), "Tell me.", "--context", "talk", "--output-format", "stream-json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home, ENV),
    )
    assert child.stdout is not None
    lines = (json.loads(line) for line in child.stdout)
    assert any(line.get("text") == " a time" for line in lines)
    child.send_signal(signum)
    rest, stderr = child.communicate(timeout=20)
    assert child.returncode == 130
    assert stderr.split() == [b"interrupted"]
    assert json.loads(rest.splitlines()[-1])["type"] == "error"
    assert [message.content for message in stored(home).messages] == ["Tell me.", "Once upon a time"]
    assert stored(home).messages[1].metadata == {"interrupted": True}
    scripted_llm.script(says("The end."))
    assert command("run", config, "Go on.", "--context", "talk", home=home, env=ENV).stdout == "The end.\n"


SHELL = """
"$@" </dev/null &
child=$!
read line
kill -{signal} $child
wait $child
echo "code $?"
"""


@pytest.mark.parametrize(("signum", "code"), [("TERM", 130), ("HUP", 130), ("INT", 0)])
def test_a_background_job_of_a_script_can_be_ended(home, config, scripted_llm, signum, code):
    # Such a job ignores Ctrl-C, which is the shell's wish; the other signals end it all the same.
    told = threading.Event()

    def rest(exchange):
        told.wait(30)
        exchange.event({"id": "1", "choices": [{"index": 0, "delta": {"content": "."}, "finish_reason": "stop"}]})
        exchange.event("[DONE]")
        exchange.write(b"0\r\n\r\n")

    scripted_llm.script(says(["Once"], then=rest))
    shell = subprocess.Popen(
        ["sh", "-c", SHELL.format(signal=signum), "sh", *COMMAND, "run", str(config), "Tell me.", "--context", "talk"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(home, ENV),
    )
    while not scripted_llm.requests:
        os.sched_yield()
    assert shell.stdin is not None
    shell.stdin.write(b"go\n")
    shell.stdin.flush()
    if code == 0:
        told.set()
    stdout, _ = shell.communicate(timeout=60)
    told.set()
    assert stdout.decode().endswith(f"code {code}\n")
    contents = [message.content for message in stored(home).messages]
    assert contents[0] == "Tell me."
    if code == 0:
        assert contents[1:] == ["Once."]


def test_nohup_outlives_its_terminal(home, config, scripted_llm):
    told = threading.Event()

    def slow(exchange):
        told.wait(30)
        says("Done.")(exchange)

    scripted_llm.script(slow)
    child = subprocess.Popen(
        ["nohup", *COMMAND, "run", str(config), "Tell me."],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(home, ENV),
    )
    while not scripted_llm.requests:
        os.sched_yield()
    child.send_signal(signal.SIGHUP)
    told.set()
    assert child.communicate(timeout=60)[0] == b"Done.\n"
    assert child.returncode == 0


def test_ctrl_c_again_and_again_is_one_word(home, config, scripted_llm):
    scripted_llm.script(says(["Once"], then=hangs))
    child = subprocess.Popen(
        [*COMMAND, "run", str(config), "Tell me.", "--output-format", "stream-json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home, ENV),
    )
    assert child.stdout is not None
    assert any(b"Once" in line for line in child.stdout)
    assert child.stderr is not None
    child.send_signal(signal.SIGINT)
    # Until it says so it may be told more than once.
    while child.stderr.readline().strip() != b"interrupted":
        pass
    for _ in range(20):
        child.send_signal(signal.SIGINT)
    _, rest = child.communicate(timeout=20)
    assert child.returncode == 130
    assert rest == b""


def test_a_killed_run_leaves_the_question_and_the_next_run_works(home, config, scripted_llm):
    scripted_llm.script(says(["Once"], then=hangs))
    child = subprocess.Popen(
        [*COMMAND, "run", str(config), "Tell me.", "--context", "talk", "--output-format", "stream-json"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment(home, ENV),
    )
    assert child.stdout is not None
    assert any(b"Once" in line for line in child.stdout)
    child.kill()
    child.communicate(timeout=20)
    assert [message.content for message in stored(home).messages] == ["Tell me."]
    scripted_llm.script(says("The end."))
    assert command("run", config, "Go on.", "--context", "talk", home=home, env=ENV).stdout == "The end.\n"
    assert [message.role for message in stored(home).messages] == ["user", "user", "assistant"]


@pytest.mark.parametrize(
    ("script", "clue"),
    [
        ([fails(401, f"Incorrect API key provided: {SECRET}")], "SOME_KEY"),
        ([fails(429, "slow down", {"Retry-After": "999"})] * 9, "slow down"),
        ([fails(500, "oops")] * 9, "oops"),
        ([fails(404, "no such thing")], "any"),
        ([sends(b"<html>hello</html>", "text/html")], "answer"),
        ([sends(b"data: {not json\n\n")], "answer"),
        ([cuts] * 9, "127.0.0.1"),
        ([says("")], "answer"),
    ],
    ids=["wrong key", "429", "500", "404", "html", "not json", "cut", "empty"],
)
def test_a_server_that_lets_one_down_gives_one_line_and_the_question_is_kept(home, config, scripted_llm, script, clue):
    scripted_llm.script(*script)
    line = one_line(command("run", config, "Hi.", "--context", "talk", home=home, env=ENV), 1)
    assert "assistant" in line
    assert clue in line
    assert SECRET not in line
    assert [message.content for message in stored(home).messages] == ["Hi."]
    assert SECRET not in "".join(file.read_text(encoding="utf-8") for file in home.rglob("*") if file.is_file())


def test_an_unset_key_is_named(home, config):
    assert "SOME_KEY" in one_line(command("run", config, "Hi.", home=home), 1)


def test_a_server_that_is_not_there_and_one_that_does_not_answer(home, config, scripted_llm, tmp_path):
    gone = tmp_path / "gone.yaml"
    text = config.read_text(encoding="utf-8").replace(scripted_llm.url, "http://127.0.0.1:9/v1")
    gone.write_text(text, encoding="utf-8")
    assert "127.0.0.1:9" in one_line(command("run", gone, "Hi.", home=home, env=ENV), 1)
    slow = tmp_path / "slow.yaml"
    slow.write_text(config.read_text(encoding="utf-8").replace("tools:", "timeout: 0.2\n    tools:"), encoding="utf-8")
    scripted_llm.script(*[hangs] * 9)
    assert "0.2" in one_line(command("run", slow, "Hi.", home=home, env=ENV), 1)


def test_c106_an_answer_that_the_console_cannot_show_is_asked_for_once(home, config, scripted_llm):
    scripted_llm.script(says("naïve 🎉"))
    env = {**ENV, "PYTHONIOENCODING": "cp1252"}
    done = subprocess.run(
        [*COMMAND, "run", str(config), "Hi.", "--context", "talk"],
        env=environment(home, env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    assert done.stdout == "naïve ?\n".encode("cp1252")
    assert len(scripted_llm.requests) == 1
    assert stored(home).messages[1].content == "naïve 🎉"


def test_every_line_of_stream_json_is_as_the_page_says(home, config, scripted_llm):
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    schema = json.loads(page.split("```json\n")[1].split("```")[0])
    scripted_llm.script(calls("count", {"message": "abc"}), says(["Thr", "ee."]), fails(400))
    done = command("run", config, "How long?", "--output-format", "stream-json", "--usage", home=home, env=ENV)
    failed = command("run", config, "How long?", "--output-format", "stream-json", home=home, env=ENV)
    lines = [json.loads(line) for line in (done.stdout + failed.stdout).splitlines()]
    for line in lines:
        jsonschema.validate(line, schema)
    assert [line["type"] for line in lines] == [
        *("start", "tool_call", "tool_result", "text", "text", "result"),
        *("start", "error"),
    ]
    assert lines[2]["content"] == 3
    assert lines[5]["output"] == "Three."
    used = {
        "input_tokens": 20,
        "output_tokens": 10,
        "cached_tokens": 0,
        "reasoning_tokens": 0,
        "requests": 2,
        "cost": None,
    }
    assert lines[5]["usage"] == used
    assert done.stderr == "usage: 20 tokens in, 10 out, cost unknown\n"


def test_another_llm_for_this_run(home, config, scripted_llm):
    scripted_llm.script(says("ok"))
    command("run", config, "Hi.", "--llm", "openai:other", home=home, env=ENV)
    assert scripted_llm.requests[0]["model"] == "other"
    line = one_line(command("run", config, "Hi.", "--llm", "gguf:/no/such.gguf", home=home, env=ENV), 1)
    assert "/no/such.gguf" in line
    line = one_line(command("run", config, "Hi.", "--context", "z", "--llm", "nonsense", home=home, env=ENV), 2)
    assert not home.exists()
    assert "nonsense" in line
