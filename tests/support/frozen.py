"""Databases as earlier releases made them."""

import gzip
import json
from pathlib import Path
from typing import Any

from cleveragents.values.canonical import checksum

DATA = Path(__file__).parents[1] / "sessions" / "data"
CHECKSUMS: dict[str, str] = json.loads((DATA / "schema_1.checksums.json").read_text(encoding="utf-8"))
"""The checksum of each session's export document, by id, of the database of schema 1."""


SOUGHT_BY_SCHEMA_2 = {
    "sessions": {"id", "actor_name", "message_count", "cost_nano", "activity"},
    "messages": {"key", "session_id", "sequence", "tool_calls"},
    "usage_entries": {"key", "session_id", "cost_nano"},
    "linked_plans": {"session_id", "plan_id", "position"},
    "session_tags": {"session_id", "tag"},
}
"""Columns that the release of schema 2 looks for where there is no ``alembic_version``: with all of them it takes the
tables for the first schema. Copied by hand from that release, and never changed."""


def checksum_of_1_0(document: dict[str, Any]) -> str:
    """The checksum of ``document`` as the releases before version 1.1 of it made it."""
    ours = {"schema_version", "usage_entries", "checksum"}
    entries = [
        {key: value for key, value in entry.items() if key not in {"cached_tokens", "reasoning_tokens"}}
        for entry in document["usage_entries"]
    ]
    same = {key: value for key, value in document.items() if key not in ours}
    return checksum(same | {"schema_version": "1.0", "usage_entries": entries})


def run_script(url: str, script: str) -> None:
    """Run a script of SQL statements the way the database's own tools would."""
    if url.startswith("sqlite"):
        import sqlite3

        path = Path(url.removeprefix("sqlite:///"))
        path.parent.mkdir(exist_ok=True)
        connection = sqlite3.connect(path)
        connection.executescript(script)
        connection.close()
    else:
        import psycopg

        with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as server:
            server.execute(script.encode())


def freeze_first(url: str) -> None:
    """Make of an empty database one that the first release made, with 51 sessions."""
    kind = url.partition(":")[0].removesuffix("+psycopg")
    run_script(url, gzip.decompress((DATA / f"schema_1.{kind}.sql.gz").read_bytes()).decode())
