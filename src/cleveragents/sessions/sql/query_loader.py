"""The texts of ``queries.sql`` as a driver takes them. Read without SQLAlchemy, which takes a quarter of a second."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

_FILE = Path(__file__).with_name("queries.sql")
_COMMENT = re.compile(r"^ *--(?! (?:name|part|filter): ).*\n", re.MULTILINE)
_HEAD = re.compile(r"^-- (name|part|filter): (\w+)(?: \[(\w+)\])?\n", re.MULTILINE)
_PART = re.compile(r"\{(\w+)\}")
_PARAMETER = re.compile(r"(?<!:):(\w+)")  # but not a cast, ``::``


def load_queries(database: Literal["sqlite", "postgresql"]) -> Mapping[str, str]:
    """Every statement by its name, parts filled in, and every condition of lists as ``filter NAME``.

    ``{filters}`` stands in the statements of lists for conditions that their caller chooses.
    """
    text = _COMMENT.sub("", _FILE.read_text(encoding="utf-8"))
    if database == "postgresql":
        text = _PARAMETER.sub(r"%(\1)s", text.replace("%", "%%"))
    parts: dict[str, str] = {}
    queries: dict[str, str] = {}
    pieces = iter(_HEAD.split(text)[1:])
    for kind, name, only_on, body in zip(pieces, pieces, pieces, pieces, strict=True):
        if only_on not in {None, database}:
            continue
        filled = _PART.sub(lambda part: parts.get(part[1], part[0]), body.strip())
        if kind == "part":
            parts[name] = filled
        else:
            queries[name if kind == "name" else f"filter {name}"] = filled
    return queries
