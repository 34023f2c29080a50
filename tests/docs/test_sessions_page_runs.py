"""docs/sessions.md, "Runs on sessions": what it shows works as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

from cleveragents import open_sessions
from support.command import environment

PAGE = (Path(__file__).parents[2] / "docs" / "sessions.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Runs on sessions\n")[2].partition("\n## ")[0]

CONFIG = """
agents:
  assistant: {type: llm, llm: local, system_prompt: You are a helpful assistant., temperature: 0, max_tokens: 60}
"""


def block(language):
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", SECTION, flags=re.MULTILINE | re.DOTALL)
    return found


def test_the_commands_and_the_program_of_the_section_work(tmp_path):
    (tmp_path / "assistant.yaml").write_text(CONFIG, encoding="utf-8")
    commands = [line.removeprefix("$ ") for line in block("console").splitlines()]
    (tmp_path / "program.py").write_text(block("python"), encoding="utf-8")
    done = subprocess.run(
        ["bash", "-c", "\n".join(["set -e", *commands, "python program.py"])],
        cwd=tmp_path,
        env=environment(tmp_path / "home", {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1].startswith("usage: ")
    with open_sessions(f"sqlite:///{tmp_path / 'home' / 'cleveragents.db'}") as sessions:
        counts = [(summary.actor_name, summary.message_count) for summary in sessions.list()]
    assert counts == [("local/assistant", 2), ("local/assistant", 6)]
