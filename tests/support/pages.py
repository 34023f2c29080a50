"""The pages of docs/, whose blocks tests run."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from support.command import environment

DOCS = Path(__file__).parents[2] / "docs"


@dataclass(frozen=True)
class Page:
    text: str

    def blocks(self, language: str) -> list[str]:
        """The content of each block that is marked as ``language``."""
        return re.findall(rf"^```{language}\n(.*?)^```$", self.text, flags=re.MULTILINE | re.DOTALL)

    def section(self, heading: str) -> "Page":
        """What stands under ``## heading``."""
        return Page(self.text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0])


def page(name: str) -> Page:
    """The page ``name`` of docs/."""
    return Page((DOCS / name).read_text(encoding="utf-8"))


def run_commands(block: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run the commands of a console block one after the other in ``folder``, with a home of their own there."""
    commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
    assert commands
    done = subprocess.run(
        ["bash", "-c", "set -ex\n" + "\n".join(commands)],
        cwd=folder,
        env=environment(folder / "home", {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done
