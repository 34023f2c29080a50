"""What the commands print: results on stdout, everything else on stderr, nothing that a terminal would obey."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

import click

from cleveragents.values.json import dump_json
from cleveragents.values.text import UNSAFE, terminal_text

FORMATS = ("table", "json", "jsonl")

APPROVAL_REFUSED = 7

format_option = click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    default="table",
    show_default=True,
    help="A table for people, or JSON for programs.",
)


def say(text: str) -> None:
    """A remark to the person, on stderr. A stderr that takes nothing is no reason to fail."""
    try:
        print(terminal_text(text), file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def show(text: str) -> None:
    """Text from a conversation or an agent, on stdout, safe for a terminal."""
    print(terminal_text(text))


def show_json(value: Any) -> None:
    """One JSON value on one line of stdout, exactly as it is; what a console would obey, or cannot show, is escaped."""
    text = terminal_json(value)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        text = json.dumps(value, separators=(",", ":"))
    print(text)


def terminal_json(value: Any) -> str:
    """``value`` as one line of JSON, the characters that a terminal would obey as escapes: the same value."""
    text = dump_json(value)
    return text if text.isprintable() else UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def show_bytes(content: bytes) -> None:
    """The content of a file on stdout, byte for byte."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def typed_text(argument: str) -> str:
    """An argument as it was typed: where the locale is not UTF-8, Python decodes other bytes to surrogates."""
    return os.fsencode(argument).decode("utf-8", "surrogateescape")


def as_typed(_ctx: click.Context, _param: click.Parameter, value: str | tuple[str, ...] | None) -> object:
    """``typed_text`` as the callback of an argument or an option."""
    if isinstance(value, tuple):
        return tuple(map(typed_text, value))
    return None if value is None else typed_text(value)


def confirm(question: str, yes: bool) -> None:
    """Go on only if the person wants it: asked on a terminal, told by --yes elsewhere."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{question} There is no terminal to ask on; add --yes to do it")
    if not click.confirm(terminal_text(question), err=True):
        say("nothing was changed")
        click.get_current_context().exit(APPROVAL_REFUSED)


def discard_stdout() -> None:
    """Point stdout at nothing, once it takes no more: Python would complain when it flushes at exit."""
    _discard(sys.stdout)


def _discard(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def open_closed_streams() -> None:
    """Give standard streams that were closed by whoever started this process a place, before a file takes it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - open as long as the process


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
