import textwrap

import pytest

from cleveragents import load_config
from cleveragents.errors import ConfigError


@pytest.fixture
def paper(tmp_path, monkeypatch):
    """The path of ``paper.yaml``, as someone in its folder writes it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "paper.yaml"


@pytest.fixture
def load(paper):
    """Load a file with this text."""

    def load(text):
        paper.write_text(textwrap.dedent(text), encoding="utf-8")
        return load_config("paper.yaml")

    return load


@pytest.fixture
def faults(load):
    """The faults of a file with this text, without the file's name."""

    def faults(text):
        with pytest.raises(ConfigError) as raised:
            load(text)
        assert all(line.startswith("paper.yaml:") for line in raised.value.faults)
        assert str(raised.value) == "\n".join(raised.value.faults)
        return [line.removeprefix("paper.yaml:").strip() for line in raised.value.faults]

    return faults
