"""What session commands print as JSON, held to the schemas of docs/commands.md."""

import json
import subprocess
from typing import Any

from jsonschema import Draft202012Validator

from support.command import ok
from support.pages import page

PLAN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

(_SCHEMA,) = (block for block in page("commands.md").blocks("json") if "$defs" in block)
_DEFINITIONS = json.loads(_SCHEMA)["$defs"]


def checked(document: Any, name: str) -> Any:
    """``document`` after it was held to the schema that docs/commands.md has under ``name``."""
    schema = {"$defs": _DEFINITIONS, "$ref": f"#/$defs/{name}", "unevaluatedProperties": False}
    if _DEFINITIONS[name].get("type") == "array":
        del schema["unevaluatedProperties"]
    Draft202012Validator(schema).validate(document)
    return document


def listed(done: "subprocess.CompletedProcess[str]") -> list[str]:
    """The ids in what ``session list --format json`` printed."""
    return [each["session_id"] for each in checked(json.loads(ok(done)), "list")]
