"""The JSON Schema of a configuration file, for editors."""

from __future__ import annotations

from typing import Any

from cleveragents.config.models import AppConfig


def json_schema() -> dict[str, Any]:
    """The schema, of draft 2020-12. It knows each section by itself; how they fit together, ``load_config`` checks."""
    schema = AppConfig.model_json_schema()
    for definition in schema["$defs"].values():
        if "type" in definition["properties"]:
            # Python knows an agent's type by its class; a file has to say it.
            definition["required"].insert(0, "type")
            del definition["properties"]["type"]["default"]
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "CleverAgents configuration",
        "description": "Agents, and the routes by which messages reach them.",
    }
    return {**head, **{key: value for key, value in schema.items() if key not in head}}
