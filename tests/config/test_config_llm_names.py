"""Names of llms: a provider's, or whatever a server at an address of its own calls it."""

import pytest

from cleveragents import load_config
from cleveragents.errors import ConfigError


def config(tmp_path, agent):
    path = tmp_path / "a.yaml"
    path.write_text(f"agents:\n  a: {agent}\n", encoding="utf-8")
    return load_config(path)


@pytest.mark.parametrize("name", ["smollm2", "qwen3:8b", "org/model-7b", "openai:gpt-5-mini"])
def test_a_server_at_an_address_of_its_own_has_names_of_its_own(tmp_path, name):
    loaded = config(tmp_path, f"{{type: llm, llm: '{name}', base_url: 'http://127.0.0.1:1/v1'}}")
    assert loaded.agents["a"].llm == name


def test_without_an_address_a_name_has_its_provider(tmp_path):
    with pytest.raises(ConfigError, match="'smollm2' is not provider:model"):
        config(tmp_path, "{type: llm, llm: smollm2}")
