"""The ways of installing that the README gives, each into folders of its own, from this clone."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(
    r"^```sh\n(.*?)^```$",
    (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## Install\n")[2],
    flags=re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize("tool", ["pipx", "uv"])
def test_the_command_is_installed_with_its_local_llm(tool, tmp_path):
    (block,) = [block for block in BLOCKS if block.startswith(tool)]
    env = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PIPX_HOME": str(tmp_path / "pipx"),
        "PIPX_BIN_DIR": str(tmp_path / "bin"),
        "UV_TOOL_DIR": str(tmp_path / "uv"),
        "UV_TOOL_BIN_DIR": str(tmp_path / "bin"),
        "CLEVERAGENTS_HOME": str(tmp_path / "home"),
    }
    subprocess.run(["sh", "-ec", block], cwd=ROOT, env=env, check=True)
    run = [tmp_path / "bin/cleveragents", "run", "examples/assistant.yaml", "What is the capital of France?"]
    done = subprocess.run(run, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "The capital of France is Paris."), done.stderr
