"""Everything that docs/tools.md shows is run, and what it says about the sandbox is so."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cleveragents import load_config
from cleveragents.agents.environment import PASSED_ON
from cleveragents.agents.tool.limits import MEMORY_LIMIT, PRINT_LIMIT, PROCESSES, SIZE_LIMIT, TIME_LIMIT
from cleveragents.config import ToolAgentConfig
from cleveragents.values.json import MAX_DEPTH
from support.command import environment
from support.pages import page
from support.tools import call, everywhere, failure

PAGE = page("tools.md")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tools")
    for text in PAGE.blocks("yaml"):
        (folder / text.splitlines()[0].removeprefix("# ")).write_text(text, encoding="utf-8")
    return folder


def run(folder, command):
    env = environment(folder / "home", {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"})
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_every_file_is_valid(folder):
    files = list(folder.glob("*.yaml"))
    assert len(files) == len(PAGE.blocks("yaml")) >= 5
    for file in files:
        assert load_config(file).agents


def test_every_command_prints_what_is_shown(folder):
    shown = [part for block in PAGE.blocks("console") for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    assert len(shown) >= 4
    for part in shown:
        command, _, output = part.partition("\n")
        assert run(folder, command) == output, command


def test_the_files_without_a_command_work_too(folder):
    patient = load_config(folder / "patient.yaml").agents["patient"]
    assert isinstance(patient, ToolAgentConfig)
    assert len(call(patient.code, "text").content) == 64
    price = load_config(folder / "shop.yaml").agents["price"]
    assert isinstance(price, ToolAgentConfig)
    assert set(price.parameters) == {"article", "count"}
    assert call("input = {'article': 'tea', 'count': 2}\n" + price.code).content == 7.0


def test_the_program_prints_what_is_shown():
    (program,) = PAGE.blocks("python")
    (output,) = PAGE.blocks("text")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (output, "")


def test_the_limits_are_those_of_the_code():
    limits = PAGE.section("Limits").text
    for number in [f"{TIME_LIMIT:g} seconds", f"{MEMORY_LIMIT:,} bytes", f"{SIZE_LIMIT // 1_000_000} MB each"]:
        assert number in limits
    assert f"| {MAX_DEPTH} levels |" in limits
    assert f"{PRINT_LIMIT:,} characters" in limits
    assert f"| calls at the same time | {PROCESSES} |" in limits


def test_the_variables_that_are_handed_on_are_those_of_the_code():
    listed = re.search(r"environment variables (.*?)\s+are handed on", PAGE.section("`--unsafe`").text, flags=re.DOTALL)
    assert listed is not None
    assert set(re.findall(r"`([^`]+)`", listed[1])) == {*PASSED_ON, "LC_*"}


def test_the_modules_that_are_said_to_be_there_are_there():
    (listed,) = re.findall(
        r"used most:\n\n(.*?)\n\n", PAGE.section("What the sandbox has and lacks").text, flags=re.DOTALL
    )
    modules = re.findall(r"`(\w+)`", listed)
    assert len(modules) > 15
    call("".join(f"import {module}\n" for module in modules))


@pytest.mark.parametrize("module", ["string", "uuid", "operator", "statistics", "textwrap", "urllib"])
def test_the_modules_that_are_said_to_be_missing_are_missing(module):
    assert f"`{module}`" in PAGE.section("What the sandbox has and lacks").text
    assert failure(f"import {module}").startswith("ModuleNotFoundError")


def test_what_differs_quietly_is_so():
    assert call("result = type(x for x in [1]).__name__").content == "list"
    assert call("import datetime, time\nresult = [time.timezone, time.tzname[0]]").content == [0, "UTC"]
    assert failure("raise ValueError('code', 5)").startswith(
        "an exception was raised with something other than one text"
    )
    for missing in [
        "class A(B):\n    pass",
        "class A:\n    @property\n    def b(self):\n        pass",
        "from math import *",
    ]:
        assert failure(missing)


@everywhere
def test_what_is_said_to_be_converted_is(unsafe):
    code = """
from collections import Counter, defaultdict, namedtuple
result = [(1,), namedtuple("P", "x")(1), defaultdict(int, a=1), Counter("a")]
"""
    assert call(code, unsafe=unsafe).content == [[1], [1], {"a": 1}, {"a": 1}]
