"""What the commands print: results on stdout, everything else on stderr, nothing that a terminal would obey."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from cleveragents.domain.values import dump_json, terminal_text

FORMATS = ("table", "json", "jsonl")

format_option = click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="A table for people, or JSON for programs.",
)


def say(text: str) -> None:
    """A remark to the person, on stderr. A closed stderr is no reason to fail."""
    with contextlib.suppress(BrokenPipeError, ValueError):
        print(terminal_text(text), file=sys.stderr, flush=True)


def show(text: str) -> None:
    """Text from a conversation or an agent, on stdout, safe for a terminal."""
    print(terminal_text(text))


def show_json(value: Any) -> None:
    """One JSON value on one line of stdout, exactly as it is: what the console cannot show is escaped, not replaced."""
    text = dump_json(value)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        text = json.dumps(value, separators=(",", ":"))
    print(text)


def show_bytes(content: bytes) -> None:
    """The content of a file on stdout, byte for byte."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def typed_text(argument: str) -> str:
    """An argument as it was typed: where the locale is not UTF-8, Python decodes other bytes to surrogates."""
    return os.fsencode(argument).decode("utf-8", "surrogateescape")


def discard_stdout() -> None:
    """Point stdout at nothing, once its reader has gone: Python would complain when it flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], format_: str) -> None:
    """Rows as an aligned table of ``columns``, as one JSON array, or as JSON lines with every key."""
    if format_ == "json":
        show_json([dict(row) for row in rows])
    elif format_ == "jsonl":
        for row in rows:
            show_json(dict(row))
    else:
        _show_table([[_cell(row.get(column)) for column in columns] for row in rows], columns)


def _cell(value: Any) -> str:
    return "" if value is None else terminal_text(str(value)).replace("\n", " ")


def _show_table(rows: list[list[str]], columns: Sequence[str]) -> None:
    if not rows:
        return
    table = [[column.upper().replace("_", " ") for column in columns], *rows]
    widths = [max(len(row[index]) for row in table) for index in range(len(columns))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
