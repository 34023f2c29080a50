"""Runs whose answers were cut off or broke off: what is shown, and what is stored of them and of their cost."""

import asyncio
import json
import signal
import subprocess

import pytest

from cleveragents import CleverAgentsApp, ContextManager, LLMError, open_sessions
from support.command import COMMAND, command, environment, one_line
from support.scripted_llm import calls, cuts, fails, hangs, says
from support.scripted_responses import responds

CONFIG = """
name: local/cut
agents:
  planner: {{type: llm, llm: "openai:gpt-5-mini", base_url: "{url}", max_tokens: 5, tools: [count]}}
  count: {{type: tool, code: 'result = len(message)'}}
  shout: {{type: tool, code: 'result = message.upper()'}}
routes:
  plain: {{from: input, through: [planner], to: output}}
{more}
"""
NOTE = """\
  note: {type: tool, code: 'context["noted"] = message; result = message'}
"""
RACE = """
agents:
  one: {{type: llm, llm: "openai:gpt-5-mini", base_url: "{url}"}}
  two: {{type: llm, llm: "openai:gpt-5-mini", base_url: "{url}"}}
routes:
  race: {{from: input, through: [{{parallel: {{agents: [one, two], join: first}}}}], to: output}}
"""
WARNING = "warning: agent planner: its answer was cut off: at the limit of 5 tokens; raise 'max_tokens'\n"


@pytest.fixture
def config(tmp_path, scripted_llm):
    def write(more=""):
        path = tmp_path / "cut.yaml"
        path.write_text(CONFIG.format(url=scripted_llm.url, more=more), encoding="utf-8")
        return path

    return write


def test_c110_the_command_warns_and_every_output_has_the_fact(home, config, scripted_llm, tmp_path):
    scripted_llm.always(says("Half an", finish="length"))
    text = command("run", config(), "x", "--context", "talk", home=home)
    assert (text.returncode, text.stdout, text.stderr) == (0, "Half an\n", WARNING)
    document = command("run", config(), "x", "--new-session", "--output-format", "json", home=home)
    assert WARNING in document.stderr
    assert json.loads(document.stdout)["cut_off"] == {"planner": "length"}
    stream = command("run", config(), "x", "--output-format", "stream-json", home=home)
    lines = [json.loads(line) for line in stream.stdout.splitlines()]
    assert {"type": "cut_off", "agent": "planner", "reason": "length"} in lines
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("x\n", encoding="utf-8")
    batch = command("run", config(), "--batch", prompts, home=home)
    assert json.loads(batch.stdout)["cut_off"] == {"planner": "length"}
    assert f"line 1: {WARNING}" in batch.stderr
    assert "Half an [cut off: length]" in command("session", "show", "last", home=home).stdout
    assert "Half an [cut off: length]" in command("context", "show", "talk", home=home).stdout
    tail = json.loads(command("session", "tail", "last", "--format", "json", home=home).stdout)
    assert tail[-1]["metadata"] == {"cleveragents": {"cut_off": "length"}}


def test_c110_the_next_stage_gets_the_text_and_what_it_makes_of_it_is_whole(config, scripted_llm, tmp_path):
    scripted_llm.always(says("Half an", finish="length"))
    network = "  on: {from: plain, through: [shout], to: output}"
    context = ContextManager("talk", tmp_path / "contexts")
    result = CleverAgentsApp(config(network)).run_sync("x", context=context)
    assert sorted(result.outputs) == ["HALF AN", "Half an"]
    assert result.cut_off == {"planner": "length"}
    stored = {message.content: dict(message.metadata) for message in context.messages[1:]}
    assert stored == {"HALF AN": {}, "Half an": {"cleveragents": {"cut_off": "length"}}}


def test_what_earlier_rounds_used_is_shown_when_a_later_one_fails(home, config, scripted_llm, tmp_path):
    scripted_llm.script(calls("count", {"message": "abc"}), fails(400))
    done = command("run", config(), "x", "--usage", home=home)
    assert done.returncode == 1
    assert "usage: 10 tokens in, 5 out, cost $0.0000125\n" in done.stderr
    scripted_llm.script(calls("count", {"message": "abc"}), fails(400))
    done = command("run", config(), "x", "--output-format", "stream-json", home=home)
    assert json.loads(done.stdout.splitlines()[-1])["usage"]["input_tokens"] == 10
    scripted_llm.script(calls("count", {"message": "abc"}), fails(400))
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("x\n", encoding="utf-8")
    (result,) = map(json.loads, command("run", config(), "--batch", prompts, home=home).stdout.splitlines())
    assert result["usage"] == {"input_tokens": 10, "output_tokens": 5, "cost": 0.0000125}


@pytest.mark.parametrize("ending", ["broken", "cancelled"])
def test_a_session_knows_that_it_does_not_know_what_a_broken_answer_cost(tmp_path, config, scripted_llm, ending):
    scripted_llm.script(says("Half", then=cuts if ending == "broken" else hangs))

    async def run(app, session_id):
        running = app.stream("x", session_id=session_id)
        async for event in running:
            if ending == "cancelled" and getattr(event, "text", ""):
                await running.aclose()

    with open_sessions(f"sqlite:///{tmp_path / 'sessions.db'}") as sessions:
        session_id = sessions.create("local/cut").session_id
        app = CleverAgentsApp(config(), sessions=sessions)
        if ending == "broken":
            with pytest.raises(LLMError):
                asyncio.run(run(app, session_id))
        else:
            asyncio.run(run(app, session_id))
        assert not sessions.summary(session_id).token_usage.cost_complete
        assert sessions.last_messages(session_id, 1)[0].metadata == {"interrupted": True}


def test_an_agent_that_another_one_was_faster_than_has_used_what_nobody_knows(tmp_path, scripted_llm):
    path = tmp_path / "race.yaml"
    path.write_text(RACE.format(url=scripted_llm.url), encoding="utf-8")
    scripted_llm.script(says("slow", then=hangs), says("fast"))
    result = CleverAgentsApp(path).run_sync("x")
    assert result.outputs == ["fast"]
    assert (result.usage.requests, result.usage.input_tokens, result.usage.cost) == (2, 10, None)


def test_a_usage_that_no_database_holds_is_unknown_and_costs_neither_answer_nor_context(
    tmp_path, config, scripted_llm, monkeypatch
):
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_llm.url)
    scripted_llm.script(responds("Hello", counts=(10**30, 5)))
    path = config("  on: {from: plain, through: [note], to: output}")
    text = path.read_text(encoding="utf-8").replace("agents:\n", f"agents:\n{NOTE}", 1)
    plain = text.replace(f', base_url: "{scripted_llm.url}"', "").replace('"openai:', '"openai-responses:')
    path.write_text(plain, encoding="utf-8")
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    with open_sessions(f"sqlite:///{tmp_path / 'sessions.db'}") as sessions:
        session_id = sessions.create("local/cut").session_id
        result = CleverAgentsApp(path, sessions=sessions).run_sync("x", session_id=session_id)
        assert result.usage.cost is None
        summary = sessions.summary(session_id)
        assert (summary.message_count, summary.token_usage.cost_complete) == (3, False)
        assert summary.metadata["cleveragents"]["global_context"] == {"noted": "Hello"}


def test_after_a_ctrl_c_it_is_said_what_was_used_and_that_its_cost_is_unknown(home, config, scripted_llm):
    scripted_llm.script(calls("count", {"message": "abc"}), says("Half", then=hangs))
    child = subprocess.Popen(
        [*COMMAND, "run", str(config()), "x", "--usage", "--output-format", "stream-json"],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    while json.loads(child.stdout.readline()).get("text") != "Half":
        pass
    child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=30)
    assert child.returncode == 130
    used = {
        "input_tokens": 10,
        "output_tokens": 5,
        "cached_tokens": 0,
        "reasoning_tokens": 0,
        "requests": 2,
        "cost": None,
    }
    assert json.loads(stdout) == {"type": "error", "message": "interrupted", "usage": used}
    assert "usage: 10 tokens in, 5 out, cost unknown\n" in stderr


def test_a_temperature_that_was_left_out_is_said_with_v(home, config, scripted_llm):
    path = config()
    plain = path.read_text(encoding="utf-8").replace(f'base_url: "{scripted_llm.url}"', "temperature: 0.5")
    path.write_text(plain.replace("openai:", "openai-chat:"), encoding="utf-8")
    scripted_llm.script(says("Yes."), fails(400))
    env = {"OPENAI_BASE_URL": scripted_llm.url, "OPENAI_API_KEY": "sk-test"}
    done = command("run", path, "x", "-v", home=home, env=env)
    assert "planner: asked without its temperature, which this llm does not take" in done.stderr.splitlines()
    one_line(command("run", path, "x", home=home, env=env), 1)
