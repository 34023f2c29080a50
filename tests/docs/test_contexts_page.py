"""docs/contexts.md: every command and the program, in their order, in a fresh folder."""

import subprocess
import sys

from support.command import environment
from support.pages import page, run_commands

PAGE = page("contexts.md")
ECHO = "agents: {echo: {type: tool, code: result = message}}\n"


def test_every_command_of_the_page_works_as_it_stands_there(tmp_path):
    (tmp_path / "echo.yaml").write_text(ECHO, encoding="utf-8")
    (commands,) = PAGE.blocks("console")
    assert len(commands.splitlines()) > 15
    assert "Remember the milk." in run_commands(commands, tmp_path).stdout


def test_the_program_of_the_page_works_as_it_stands_there(tmp_path):
    (program,) = PAGE.blocks("python")
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
