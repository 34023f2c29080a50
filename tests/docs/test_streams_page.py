"""docs/streams.md: every example is run as it stands there."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cleveragents import CleverAgentsApp, load_config
from cleveragents.config import OPERATORS
from cleveragents.config.graph import FORMATS
from cleveragents.conversation.content import content_text
from cleveragents.errors import CleverAgentsError

PAGE = (Path(__file__).parents[2] / "docs" / "streams.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```yaml\n(.*?)^```\n+```console\n\$ (.*?)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("file", "command", "shown"), EXAMPLES, ids=[command for _, command, _ in EXAMPLES])
def test_an_example_gives_what_the_page_shows(file, command, shown, tmp_path):
    program, verb, name, prompt = shlex.split(command)
    assert (program, verb) == ("cleveragents", "run")
    (tmp_path / name).write_text(file, encoding="utf-8")

    try:
        outputs = CleverAgentsApp(tmp_path / name).run_sync(prompt).outputs
    except CleverAgentsError as error:
        outputs = [str(error)]

    assert [content_text(output) for output in outputs] == shown.splitlines()


def test_the_drawing_on_the_page_is_that_of_its_example(tmp_path):
    graph = r"^\$ cleveragents config graph (\S+) --format text\n(.*?)^```"
    ((name, drawing),) = re.findall(graph, PAGE, flags=re.MULTILINE | re.DOTALL)
    (file,) = [file for file, command, _ in EXAMPLES if name in command]
    (tmp_path / name).write_text(file, encoding="utf-8")

    assert [*FORMATS["text"](load_config(tmp_path / name))] == drawing.splitlines()


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
