"""docs/streams.md: every example is run as it stands there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cleveragents import StreamRouter, load_config
from cleveragents.agents.build import build_agents
from cleveragents.config import OPERATORS
from cleveragents.domain.history import content_text
from cleveragents.errors import CleverAgentsError
from support.networks import run

PAGE = (Path(__file__).parents[2] / "docs" / "streams.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```\n+```console\n\$ (.*?)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("file", "command", "shown"), EXAMPLES, ids=[command for _, command, _ in EXAMPLES])
def test_an_example_gives_what_the_page_shows(file, command, shown, tmp_path):
    program, verb, name, prompt = shlex.split(command)
    assert (program, verb) == ("cleveragents", "run")
    (tmp_path / name).write_text(file, encoding="utf-8")
    config = load_config(tmp_path / name)
    router = StreamRouter(build_agents(config), config.network(), hop_limit=config.hop_limit)

    try:
        outputs = run(router, prompt, dict(config.context)).outputs
    except CleverAgentsError as error:
        outputs = [str(error)]

    assert [content_text(output) for output in outputs] == shown.splitlines()


def test_every_file_on_the_page_is_an_example():
    assert len(EXAMPLES) == PAGE.count("```yaml") == PAGE.count("```console") >= 6


def test_every_operator_has_a_section_with_an_example():
    for name in OPERATORS:
        assert re.search(rf"^##+ {name}\n(?:(?!\n#).)*\n```yaml\n", PAGE, flags=re.MULTILINE | re.DOTALL), name


def test_the_program_on_the_page_runs(tmp_path):
    (program,) = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "program.py").write_text(program, encoding="utf-8")

    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.stderr == ""
    assert done.stdout.splitlines() == ["ONE {'seen': 1} []", "TWO", "THREE", "{'seen': 2}"]
