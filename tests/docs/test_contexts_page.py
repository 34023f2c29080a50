"""docs/contexts.md: every command and the program, in their order, in a fresh folder."""

import re
import subprocess
import sys
from pathlib import Path

from support.command import environment

PAGE = (Path(__file__).parents[2] / "docs" / "contexts.md").read_text(encoding="utf-8")
ECHO = "agents: {echo: {type: tool, code: result = message}}\n"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_every_command_of_the_page_works_as_it_stands_there(tmp_path):
    (tmp_path / "echo.yaml").write_text(ECHO, encoding="utf-8")
    env = environment(tmp_path / "home", {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"})
    commands = [line[2:] for line in blocks("console")[0].splitlines()]
    assert len(commands) > 15
    script = "set -ex\n" + "\n".join(commands)
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Remember the milk." in done.stdout


def test_the_program_of_the_page_works_as_it_stands_there(tmp_path):
    (program,) = blocks("python")
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment(tmp_path / "home"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "['notes', 'notes-backup']" in done.stdout
