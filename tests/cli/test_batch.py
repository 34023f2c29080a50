"""``run --batch``: a result for every line, in order, once, whatever happens to the process."""

import json
import os
import random
import signal
import subprocess
import threading
from hashlib import sha256

import pytest

from support.command import COMMAND, command, environment, one_line
from support.scripted_llm import fails, hangs, says
from support.terminal import on_a_terminal

SHOUT = """
agents:
  shout:
    type: tool
    code: |
      context["n"] += 1
      result = message.upper() if message != "bad" else 1 / 0
context: {n: 0}
"""


@pytest.fixture
def config(tmp_path):
    def write(text=SHOUT):
        path = tmp_path / "shout.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def batch(tmp_path):
    def write(*lines):
        path = tmp_path / "prompts.jsonl"
        path.write_bytes(b"".join(line if isinstance(line, bytes) else line.encode() for line in lines))
        return path

    return write


def documents(text):
    return [json.loads(line) for line in text.splitlines()]


def test_every_line_has_its_result_in_order_with_its_number(home, config, batch):
    prompts = batch('"one"\n', '{"prompt": "two", "id": 7}\n', "\n", '"three"')

    done = command("run", config(), "--batch", prompts, home=home)

    assert (done.returncode, done.stderr) == (0, "3 prompts: 3 answered\n")
    assert [(result["line"], result["output"], result["error"]) for result in documents(done.stdout)] == [
        (1, "ONE", None),
        (2, "TWO", None),
        (4, "THREE", None),
    ]
    assert not home.exists()


def test_prompts_come_from_standard_input_too(home, config):
    done = command("run", config(), "--batch", "-", home=home, stdin='"é 🎉\\r\\n"\r\n')

    assert documents(done.stdout) == [
        {
            "line": 1,
            "sha256": sha256('"é 🎉\\r\\n"'.encode()).hexdigest(),
            "output": "É 🎉\r\n",
            "outputs": ["É 🎉\r\n"],
            "error": None,
            "usage": {"input_tokens": 0, "output_tokens": 0, "cost": 0.0},
        }
    ]


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ('"bad"', "agent shout: ZeroDivisionError: division by zero (line 2)"),
        (b'"\xff"', 'not UTF-8; expected plain text, a JSON text, or an object with "prompt"'),
        ("[" * 100_000, 'not JSON, which it begins like; expected plain text, a JSON text, or an object with "prompt"'),
        ('{"prompt"', 'not JSON, which it begins like; expected plain text, a JSON text, or an object with "prompt"'),
        ("5", 'no prompt; expected plain text, a JSON text, or an object with "prompt"'),
        ('{"promt": "x"}', 'no prompt; expected plain text, a JSON text, or an object with "prompt"'),
        ('{"prompt": null}', 'no prompt; expected plain text, a JSON text, or an object with "prompt"'),
        ('" "', "the prompt is empty"),
    ],
)
def test_a_line_that_fails_has_its_error_costs_the_others_nothing_and_shows_in_the_exit_code(
    home, config, batch, line, error
):
    done = command("run", config(), "--batch", batch('"a"\n', line, '\n"b"\n'), home=home)

    first, second, third = documents(done.stdout)
    assert (first["output"], third["output"]) == ("A", "B")
    rest = {"input": {"promt": "x"}} if "promt" in str(line) else {}
    digest = sha256(line if isinstance(line, bytes) else line.encode()).hexdigest()
    # Tool code was run there, which uses no llm.
    usage = {"input_tokens": 0, "output_tokens": 0, "cost": 0.0} if "agent" in error else None
    nothing = {"output": None, "outputs": [], "error": error, "usage": usage}
    assert second == {"line": 2, "sha256": digest} | rest | nothing
    assert done.stderr == "3 prompts: 2 answered, 1 failed\nerror: 1 of 3 prompts failed\n"
    assert done.returncode == 1


def test_an_empty_batch_is_done(home, config, batch):
    done = command("run", config(), "--batch", batch("\n"), home=home)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "0 prompts: 0 answered\n")


def test_no_prompt_sees_the_context_of_another(home, config, batch):
    code = 'agents: {count: {type: tool, code: \'context["n"] += 1; result = context["n"]\'}}\ncontext: {n: 0}'
    done = command("run", config(code), "--batch", batch('"x"\n' * 9), home=home)
    assert [result["output"] for result in documents(done.stdout)] == [1] * 9


def llm(scripted_llm):
    return f"agents: {{a: {{type: llm, llm: 'openai:any', base_url: '{scripted_llm.url}'}}}}"


def test_as_many_prompts_as_allowed_are_at_work_at_the_same_time_and_results_stay_in_order(
    home, config, batch, scripted_llm
):
    together = threading.Barrier(3, timeout=60)
    at_work, most = 0, 0
    lock = threading.Lock()

    def meet(exchange):
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        together.wait()
        with lock:
            at_work -= 1
        says(exchange.request["messages"][-1]["content"])(exchange)

    scripted_llm.script(*[meet] * 9)
    prompts = batch(*(f'"{number}"\n' for number in range(9)))

    done = command("run", config(llm(scripted_llm)), "--batch", prompts, "--concurrency", "3", "--usage", home=home)

    assert [result["output"] for result in documents(done.stdout)] == [str(number) for number in range(9)]
    assert documents(done.stdout)[0]["usage"] == {"input_tokens": 10, "output_tokens": 5, "cost": None}
    assert most == 3
    assert done.stderr == "usage: 90 tokens in, 45 out, cost unknown\n9 prompts: 9 answered\n"


def test_an_llm_that_fails_on_one_prompt_answers_the_others(home, config, batch, scripted_llm):
    scripted_llm.script(says("Paris"), fails(400, "too rude"), says("Rome"))
    prompts = batch('"a"\n"b"\n"c"\n')

    done = command("run", config(llm(scripted_llm)), "--batch", prompts, "--concurrency", "1", home=home)

    assert done.returncode == 1
    first, second, third = documents(done.stdout)
    assert (first["output"], third["output"]) == ("Paris", "Rome")
    assert "too rude" in second["error"]


def test_verbose_says_which_line_an_agent_answered(home, config, batch):
    done = command("run", config(), "--batch", batch('"a"\n'), "-v", home=home)
    line = done.stderr.splitlines()[0]
    assert line.startswith("line 1: route: shout 0.")


def test_a_reader_that_goes_away_is_no_failure(home, config, batch):
    prompts = batch('"a"\n' * 2_000)
    shell = f"{' '.join(COMMAND)} run {config()} --batch {prompts} | head -1"
    done = subprocess.run(["bash", "-c", shell], env=environment(home), capture_output=True, text=True, check=False)
    assert (json.loads(done.stdout)["output"], done.stderr) == ("A", "")


# --- what goes together ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["--batch", "BATCH", "a prompt"],
        ["--batch", "BATCH", "--context", "talk"],
        ["--batch", "BATCH", "--output-format", "json"],
        ["--batch", "BATCH", "--resume"],
        ["--batch", "BATCH", "--concurrency", "0"],
        ["a prompt", "--output", "x.jsonl"],
        ["a prompt", "--concurrency", "2"],
    ],
    ids=" ".join,
)
def test_options_that_do_not_go_together_are_refused(home, config, batch, arguments):
    prompts = batch('"a"\n')
    arguments = [prompts if argument == "BATCH" else argument for argument in arguments]
    assert "--" in one_line(command("run", config(), *arguments, home=home), 2)
    assert not home.exists()


# --- results in a file ----------------------------------------------------------------------------------


def test_results_in_a_file_are_private_and_never_written_over(home, config, batch, tmp_path):
    prompts, output = batch('"a"\n"b"\n'), tmp_path / "results.jsonl"

    done = command("run", config(), "--batch", prompts, "--output", output, home=home)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "2 prompts: 2 answered\n")
    assert output.stat().st_mode & 0o777 == 0o600
    before = output.read_bytes()
    assert [result["output"] for result in documents(before.decode())] == ["A", "B"]
    line = one_line(command("run", config(), "--batch", prompts, "--output", output, home=home), 2)
    assert "--resume" in line
    assert output.read_bytes() == before


def test_resume_begins_a_file_that_is_not_there_and_adds_nothing_to_one_that_is_whole(home, config, batch, tmp_path):
    prompts, output = batch('"a"\n"bad"\n'), tmp_path / "results.jsonl"
    first = command("run", config(), "--batch", prompts, "--output", output, "--resume", home=home)
    before = output.read_bytes()
    second = command("run", config(), "--batch", prompts, "--output", output, "--resume", home=home)
    assert first.returncode == second.returncode == 1, "a failure counts, whichever run met it"
    again = f"error: 1 of 2 prompts failed; --retry-failed {output} runs them again\n"
    assert first.stderr == f"2 prompts: 1 answered, 1 failed\n{again}"
    assert second.stderr == f"2 prompts: 0 answered, 2 were there\n{again}"
    assert output.read_bytes() == before


@pytest.mark.parametrize("torn", [b"{", b'{"line":2,"output":"B","outputs":["B"],"error":null}', b"\0" * 5_000])
def test_a_torn_last_line_is_done_again(home, config, batch, tmp_path, torn):
    prompts, output = batch('"a"\n"b"\n"c"\n'), tmp_path / "results.jsonl"
    output.write_bytes(b'{"line":1,"output":"kept","error":null}\n' + torn)

    done = command("run", config(), "--batch", prompts, "--output", output, "--resume", home=home)

    assert done.returncode == 0
    results = documents(output.read_text(encoding="utf-8"))
    assert [(result["line"], result["output"]) for result in results] == [(1, "kept"), (2, "B"), (3, "C")]


@pytest.mark.parametrize(
    "content",
    [
        b"my shopping list\n",
        b'{"line":1,"error":null}\n\0\0\0\n',
        b'{"line":2,"error":null}\n{"line":1,"error":null}\n',
        b'{"line":"1","error":null}\n',
        b"[1]\n",
    ],
)
def test_a_file_that_holds_anything_else_is_left_as_it_is(home, config, batch, tmp_path, content):
    output = tmp_path / "results.jsonl"
    output.write_bytes(content)
    line = one_line(
        command("run", config(), "--batch", batch('"a"\n' * 5), "--output", output, "--resume", home=home), 5
    )
    assert str(output) in line
    assert output.read_bytes() == content


def test_results_of_another_longer_batch_are_refused(home, config, batch, tmp_path):
    output = tmp_path / "results.jsonl"
    output.write_bytes(b'{"line":7,"error":null}\n')
    line = one_line(command("run", config(), "--batch", batch('"a"\n'), "--output", output, "--resume", home=home), 2)
    assert "7" in line


def test_a_place_that_cannot_be_written_is_named(home, config, batch, tmp_path):
    line = one_line(command("run", config(), "--batch", batch('"a"\n'), "--output", tmp_path, home=home), 1)
    assert str(tmp_path) in line


def started(home, *arguments, **options):
    return subprocess.Popen(
        [*COMMAND, "run", *map(str, arguments)],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def test_ctrl_c_ends_a_batch_at_once_and_keeps_what_was_done(home, config, batch, tmp_path, scripted_llm):
    reached = threading.Event()

    def stay(exchange):
        reached.set()
        hangs(exchange)

    scripted_llm.script(says("Paris"), says("Rome"), stay, says("Oslo"))
    prompts, output = batch('"a"\n"b"\n"c"\n'), tmp_path / "results.jsonl"
    arguments = (config(llm(scripted_llm)), "--batch", prompts, "--concurrency", "1", "--output", output, "--resume")

    child = started(home, *arguments)
    assert reached.wait(60)
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=20)

    assert (child.returncode, stderr.split()) == (130, [b"interrupted"])
    assert [result["output"] for result in documents(output.read_text(encoding="utf-8"))] == ["Paris", "Rome"]
    assert command("run", *arguments, home=home).returncode == 0
    results = documents(output.read_text(encoding="utf-8"))
    assert [result["output"] for result in results] == ["Paris", "Rome", "Oslo"]


def test_two_runs_never_write_one_file_at_the_same_time(home, config, batch, tmp_path, scripted_llm):
    reached = threading.Event()

    def stay(exchange):
        reached.set()
        hangs(exchange)

    scripted_llm.script(stay)
    arguments = (config(llm(scripted_llm)), "--batch", batch('"a"\n'), "--output", tmp_path / "r.jsonl", "--resume")
    child = started(home, *arguments)
    try:
        assert reached.wait(60)
        assert "another run" in one_line(command("run", *arguments, home=home), 6)
    finally:
        child.kill()
        child.communicate()


def test_a_thousand_prompts_killed_at_random_moments_give_a_thousand_results_none_twice(home, config, batch, tmp_path):
    prompts = batch(*(f'"prompt {number}"\n' for number in range(1, 1_001)))
    output = tmp_path / "results.jsonl"
    arguments = (config(), "--batch", prompts, "--output", output, "--resume", "--concurrency", "8")
    kills = 0
    chance = random.Random()  # noqa: S311 - any moment will do
    # The moment is one of progress, not of time, so that it falls within the run on any machine.
    for moment in sorted(chance.sample(range(1, 90_000), 6)):
        child = started(home, *arguments)
        while child.poll() is None and not (output.exists() and output.stat().st_size >= moment):
            os.sched_yield()
        kills += child.poll() is None
        child.kill()
        child.communicate()
    done = command("run", *arguments, home=home)

    assert (done.returncode, done.stderr.splitlines()[1:]) == (0, [])
    results = documents(output.read_text(encoding="utf-8"))
    assert [(result["line"], result["output"]) for result in results] == [
        (number, f"PROMPT {number}") for number in range(1, 1_001)
    ]
    assert kills >= 4


# --- on a terminal --------------------------------------------------------------------------------------


def test_a_progress_bar_is_shown_on_a_terminal_and_nowhere_else(home, config, batch, tmp_path):
    arguments = ("run", config(), "--batch", batch('"a"\n"b"\n'))
    with (tmp_path / "out").open("wb") as file:
        shown = on_a_terminal(*arguments, home=home, stdout=file)
    assert "2/2" in shown
    assert "100%" not in on_a_terminal(*arguments, home=home), "not between results on the same terminal"
    assert len(documents((tmp_path / "out").read_text(encoding="utf-8"))) == 2
    assert command(*arguments, home=home).stderr == "2 prompts: 2 answered\n"
