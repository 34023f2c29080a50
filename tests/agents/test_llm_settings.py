"""The settings of llm agents: one field each, one rule for every way in which they are given."""

import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import cleveragents
from cleveragents import AppConfig, CleverAgentsApp, LLMAgent
from cleveragents.errors import InvalidSettingError
from support.command import environment
from support.llms import ask, failure
from support.scripted_llm import hangs, says

FILE = """
agents:
  planner:
    type: llm
    llm: openai:any
    base_url: {url}
    {setting}
"""


@pytest.fixture
def written(scripted_llm, tmp_path):
    """Makes a file with one setting for an agent that asks the scripted server."""

    def write(setting):
        path = tmp_path / "planner.yaml"
        path.write_text(FILE.format(url=scripted_llm.url, setting=setting), encoding="utf-8")
        return path

    return write


@pytest.mark.parametrize(("name", "value"), [("temperature", 0.3), ("max_tokens", 9)])
def test_a_setting_reaches_the_llm_from_a_file_and_from_python(scripted_llm, written, name, value):
    scripted_llm.script(says("ok"), says("ok"))
    CleverAgentsApp(written(f"{name}: {value}")).run_sync("What?")
    ask(LLMAgent("planner", "openai:any", base_url=scripted_llm.url, **{name: value}))
    assert [request[name] for request in scripted_llm.requests] == [value, value]


def test_a_timeout_is_kept_to_from_a_file_and_from_python(scripted_llm, written):
    scripted_llm.script(hangs, hangs)
    with pytest.raises(cleveragents.LLMError, match=r"no answer within 0\.2 seconds"):
        CleverAgentsApp(written("timeout: 0.2")).run_sync("What?")
    agent = LLMAgent("planner", "openai:any", base_url=scripted_llm.url, timeout=0.2)
    assert "no answer within 0.2 seconds" in failure(agent)


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("temperature", 2.1, "2.1 is not between 0 and 2"),
        ("temperature", "hot", "'hot' is not a number between 0 and 2"),
        ("max_tokens", 0, "0 is not greater than 0"),
        ("max_tokens", 1.5, "1.5 is not a whole number"),
        ("timeout", 0, "0 is not greater than 0"),
        ("timeout", 1e-9, "1e-09 is less than a microsecond"),
        ("timeout", 90_000, "90000 is more than 86400"),
    ],
)
def test_a_setting_is_refused_in_the_same_words_in_a_file_and_in_python(scripted_llm, written, name, value, fault):
    path = written(f"{name}: {value}")
    with pytest.raises(cleveragents.ConfigError) as caught:
        cleveragents.load_config(path)
    assert caught.value.faults == [f"{path}:7: agents.planner.{name}: {fault}"]

    agent = LLMAgent("planner", "openai:any", base_url=scripted_llm.url, **{name: value})
    assert failure(agent) == f"{name} {fault}"
    assert not scripted_llm.requests


@pytest.mark.parametrize("value", [3, -1, True, "hot"])
def test_a_temperature_is_refused_in_the_same_words_wherever_it_is_given(scripted_llm, written, value):
    agent = LLMAgent("planner", "openai:any", base_url=scripted_llm.url)
    words, _, source = failure(agent, context={"temperature": value}).partition("; ")
    assert source.startswith("it comes from the global context")
    assert failure(LLMAgent("planner", "openai:any", temperature=value)) == words
    with pytest.raises(InvalidSettingError) as for_the_run:
        CleverAgentsApp(written("timeout: 1"), temperature=value)
    assert str(for_the_run.value) == words
    agents = {"planner": {"type": "llm", "llm": "local"}}
    with pytest.raises(ValueError, match=f"context.temperature: {words.removeprefix('temperature ')}"):
        AppConfig.model_validate({"agents": agents, "context": {"temperature": value}})


@pytest.mark.parametrize("address", ["ftp://x", "http://x:y", "http://a b/v1", "http://x/v1?a=b", "http://x/v1#a"])
def test_an_address_is_refused_in_the_same_words_in_a_file_and_in_python(tmp_path, address):
    words = failure(LLMAgent("planner", "openai:any", base_url=address)).removeprefix("its 'base_url' ")
    path = tmp_path / "planner.yaml"
    path.write_text(FILE.format(url=json.dumps(address), setting=""), encoding="utf-8")
    with pytest.raises(cleveragents.ConfigError) as caught:
        cleveragents.load_config(path)
    assert caught.value.faults == [f"{path}:6: agents.planner.base_url: {words}"]


def test_an_agent_in_python_shows_its_settings_to_editors_and_takes_no_other():
    parameters = inspect.signature(LLMAgent).parameters
    assert [name for name, one in parameters.items() if one.kind is one.POSITIONAL_OR_KEYWORD] == ["name", "llm"]
    assert parameters.keys() >= {"system_prompt", "temperature", "max_tokens", "timeout", "tools", "base_url"}
    mistyped: dict[str, Any] = {"temprature": 1}
    with pytest.raises(TypeError, match="temprature"):
        LLMAgent("planner", "local", **mistyped)


NEW_FIELD = '    top_p: Annotated[Annotated[float, between(0, 1)] | None, Setting("top_p", "How many words.")] = None\n'


def test_one_field_is_all_that_another_setting_takes(scripted_llm, written, tmp_path):
    package = tmp_path / "copy" / "cleveragents"
    shutil.copytree(Path(cleveragents.__file__).parent, package)
    settings = package / "config" / "llm_settings.py"
    text = settings.read_text(encoding="utf-8").replace("import Count,", "import between, Count,")
    last = next(line for line in text.splitlines(keepends=True) if line.startswith("    timeout: "))
    settings.write_text(text.replace(last, last + NEW_FIELD), encoding="utf-8")

    def command(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "cleveragents", *arguments],
            env=environment(tmp_path / "home", {"PYTHONPATH": str(package.parent)}),
            capture_output=True,
            text=True,
            check=False,
        )

    scripted_llm.script(says("Paris"))
    done = command("run", str(written("top_p: 0.9")), "What?")
    assert (done.stdout, done.stderr) == ("Paris\n", "")
    assert scripted_llm.requests[0]["top_p"] == 0.9

    done = command("run", str(written("top_p: 7")), "What?")
    assert "agents.planner.top_p: 7 is not between 0 and 1" in done.stderr

    known = json.loads(command("config", "schema").stdout)["$defs"]["LLMAgentConfig"]["properties"]["top_p"]
    assert known["description"] == "How many words."
    assert known["anyOf"][0] == {"type": "number", "minimum": 0, "maximum": 1}

    program = "from cleveragents import LLMAgent; print(LLMAgent('a', 'local', top_p=0.9).top_p)"
    env = environment(tmp_path / "home", {"PYTHONPATH": str(package.parent)})
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "0.9\n"
