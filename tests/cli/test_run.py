"""``run`` with tool agents: what it prints, where, and how it ends."""

import json
import os
import signal
import subprocess

import pytest

from cleveragents import ContextManager
from support.command import COMMAND, command, environment, one_line
from support.terminal import on_a_terminal

ECHO = "agents: {echo: {type: tool, code: result = message}}"


@pytest.fixture
def config(tmp_path):
    def write(text=ECHO, name="echo.yaml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def stored(home, name):
    return ContextManager.open(name, root=home / "contexts")


def test_the_answer_alone_is_on_stdout(home, config):
    done = command("run", config(), "Hello there", home=home)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello there\n", "")
    assert not home.exists()


def test_argument_and_standard_input_are_joined(home, config):
    done = command("run", config(), "Review this:", home=home, stdin="a\nb\n")
    assert done.stdout == "Review this:\n\na\nb\n\n"


@pytest.mark.parametrize("arguments", [["-"], []])
def test_standard_input_alone_is_the_prompt_byte_for_byte(home, config, arguments):
    done = command("run", config(), *arguments, "--output-format", "json", home=home, stdin="  é 🎉\r\n")
    assert json.loads(done.stdout)["output"] == "  é 🎉\r\n"


def test_json_is_one_document_whatever_tools_print(home, config):
    code = """
agents:
  noisy:
    type: tool
    code: |
      print('{"fake": 1}')
      context["seen"] = [1]
      result = {"real": True}
"""
    done = command("run", config(code), "go", "--output-format", "json", home=home)
    document = json.loads(done.stdout)
    assert document["output"] == {"real": True}
    assert document["global_context"] == {"seen": [1]}
    assert '{"fake": 1}' in done.stderr


def test_stream_json_is_one_object_a_line(home, config):
    done = command("run", config(), "go", "--output-format", "stream-json", home=home)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["type"] for line in lines] == ["start", "result"]
    assert lines[-1]["output"] == "go"


def test_a_context_keeps_the_prompt_as_typed_and_the_answer(home, config):
    path = config()
    for prompt in ("first", "second"):
        assert command("run", path, prompt, "--context", "talk", home=home).returncode == 0
    messages = stored(home, "talk").messages
    assert [message.role for message in messages] == ["user", "assistant"] * 2
    # A tool agent gets what was typed, and no history.
    assert [message.content for message in messages] == ["first", "first", "second", "second"]


def test_what_agents_change_in_the_global_context_is_there_next_time(home, config):
    path = config("""
agents: {count: {type: tool, code: 'context["n"] = context.get("n", 0) + 1; result = str(context["n"])'}}
context: {n: 10}
""")
    assert command("run", path, "go", "--context", "talk", home=home).stdout == "11\n"
    assert command("run", path, "go", "--context", "talk", home=home).stdout == "12\n"
    assert stored(home, "talk").global_context == {"n": 12}


def test_a_temperature_is_for_this_run_and_never_saved(home, config):
    path = config('agents: {look: {type: tool, code: \'context["seen"] = 1; result = context.get("temperature")\'}}')
    done = command("run", path, "go", "--context", "talk", "--temperature", "0.8", home=home)
    assert done.stdout == "0.8\n"
    assert stored(home, "talk").global_context == {"seen": 1}


@pytest.mark.parametrize("value", ["hot", "-3", "nan", "inf", "2.1", ""])
def test_a_temperature_out_of_range_is_refused_before_anything_is_made(home, config, value):
    line = one_line(command("run", config(), "go", "--context", "talk", f"--temperature={value}", home=home), 2)
    assert "temperature" in line
    assert not home.exists()


@pytest.mark.parametrize("name", ["../x", "a/b", "", "con", "x" * 300, ".hidden", "a\tb"])
def test_a_bad_context_name_is_refused_and_makes_nothing(home, config, name):
    line = one_line(command("run", config(), "go", f"--context={name}", home=home), 2)
    assert "context" in line
    assert not home.exists()


@pytest.mark.parametrize("stdin", [b"", b" \n", b"\xff\xfe"])
def test_without_a_usable_prompt_nothing_runs(home, config, stdin):
    line = one_line(command("run", config(), "--context", "talk", home=home, stdin=stdin), 2)
    assert "prompt" in line or "UTF-8" in line
    assert not home.exists()


def test_a_configuration_that_is_not_there_is_named(home, tmp_path):
    assert "nowhere.yaml" in one_line(command("run", tmp_path / "nowhere.yaml", "go", home=home), 3)


def test_every_fault_of_a_configuration_has_a_line(home, config):
    done = command(
        "run", config("agents: {a: {type: tool, cod: 1}}\nroutes: {r: {from: x, to: output}}"), "go", home=home
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) >= 3
    assert "echo.yaml:1" in done.stderr
    assert "echo.yaml:2" in done.stderr


def test_a_failing_tool_fails_the_run_in_one_line_and_keeps_the_question(home, config):
    path = config('agents: {bad: {type: tool, code: \'context["a"] = 1; raise ValueError("no such thing")\'}}')
    line = one_line(command("run", path, "go", "--context", "talk", home=home), 1)
    assert "bad" in line
    assert "no such thing" in line
    talk = stored(home, "talk")
    assert [message.content for message in talk.messages] == ["go"]
    assert talk.global_context == {}


def test_a_run_that_yields_nothing_is_an_error(home, config):
    assert "no output" in one_line(
        command("run", config("agents: {mute: {type: tool, code: pass}}"), "go", home=home), 1
    )


def test_c104_a_reader_that_goes_away_is_no_failure_and_the_turn_is_saved(home, config):
    path = config("agents: {flood: {type: tool, code: 'result = \"line\\n\" * 200_000'}}")
    shell = f"{' '.join(COMMAND)} run {path} go --context talk | head -1"
    done = subprocess.run(["bash", "-c", shell], env=environment(home), capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("line\n", "")
    assert len(stored(home, "talk").messages) == 2


def test_c106_a_console_that_cannot_show_an_answer_shows_replacements(home, config):
    done = command("run", config(), "naïve 🎉", "--context", "talk", home=home, env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "na?ve ?\n", "")
    assert stored(home, "talk").messages[1].content == "naïve 🎉"


def test_an_answer_is_made_safe_for_a_terminal_and_for_nothing_else(home, config):
    answer = "a\x1b[31mb\u202ec"
    assert command("run", config(), answer, home=home).stdout == f"{answer}\n"
    assert on_a_terminal("run", config(), answer, home=home).endswith("a\\x1b[31mb\\u202ec\r\n")


def test_ctrl_c_ends_a_run_and_leaves_the_question(home, config):
    path = config(
        "agents:\n  loop:\n    type: tool\n    time_limit: 60\n    code: |\n      while True:\n          pass\n"
    )
    child = subprocess.Popen(
        [*COMMAND, "run", str(path), "go", "--context", "talk"],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    messages = home / "contexts" / "talk" / "messages.jsonl"
    while child.poll() is None and not (messages.exists() and messages.stat().st_size):
        os.sched_yield()
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=20)
    assert child.returncode == 130
    assert stderr.split() == [b"interrupted"]
    assert [message.content for message in stored(home, "talk").messages] == ["go"]


def test_an_unknown_option_names_itself_and_where_help_is(home, config):
    line = one_line(command("run", config(), "go", "--contxt", "talk", home=home), 2)
    assert "--contxt" in line
    assert "--help" in line


def test_a_new_context_is_announced_with_the_nearest_that_is_there(home, config):
    for name, said in (
        ("notes", ""),
        ("notes", ""),
        ("nots", "context 'nots' is new; did you mean 'notes'?\n"),
        ("zebra", "context 'zebra' is new\n"),
    ):
        done = command("run", config(), "go", "--context", name, home=home)
        assert (done.returncode, done.stderr) == (0, said)
