"""Rows as a table that is aligned on a terminal, or as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cleveragents.cli.kit.output import show_json
from cleveragents.values.text import terminal_text


def show_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], format_: str) -> None:
    """Rows as an aligned table of ``columns``, as one JSON array, or as JSON lines with every key."""
    if format_ == "json":
        show_json([dict(row) for row in rows])
    elif format_ == "jsonl":
        for row in rows:
            show_json(dict(row))
    else:
        _show_table([[_cell(row.get(column)) for column in columns] for row in rows], columns)


def _show_table(rows: list[list[str]], columns: Sequence[str]) -> None:
    if not rows:
        return
    table = [[column.upper().replace("_", " ") for column in columns], *rows]
    # Nothing follows the last column, so that nothing in it needs to be measured.
    widths = [max(_width(row[index]) for row in table) for index in range(len(columns) - 1)]
    for row in table:
        padded = [cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=False)]
        print("  ".join([*padded, row[-1]]).rstrip())


def _cell(value: Any) -> str:
    """``value`` as it will be on the screen: on one line, and with replacements for what a console cannot show."""
    text = "" if value is None else terminal_text(str(value)).replace("\n", " ").replace("\t", " ")
    return text if text.isascii() else text.encode(sys.stdout.encoding, "replace").decode(sys.stdout.encoding)


def _width(text: str) -> int:
    """The columns of a terminal that ``text`` takes: two for a Chinese character or an emoji, none for an accent."""
    if text.isascii():
        return len(text)
    # Of the libraries that know this the one that start-up bears: a fifth of a bare start of Python, wcwidth two.
    from rich.cells import cell_len

    return cell_len(text)
