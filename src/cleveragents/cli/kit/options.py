"""Options that several commands have, each with one meaning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])

format_option = click.option(
    "--format",
    "format_",
    type=click.Choice(("table", "json", "jsonl")),
    default="table",
    show_default=True,
    help="A table for people, or JSON for programs.",
)

last_option = click.option("--last", type=click.IntRange(min=0), metavar="N", help="Only the last N messages.")

max_size_option = click.option(
    "--max-size",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help="Refuse a file of more bytes; without it, of more than the disk has room for.",
)

_output_option = click.option(
    "--output", type=click.Path(path_type=Path, allow_dash=True), help="The file to write, '-' for standard output."
)
_force_option = click.option("--force", is_flag=True, help="Replace the file if it is there.")


def export_options(command: _Command) -> _Command:
    """``--output`` and ``--force``: where an export goes, and whether it may take the place of what is there."""
    return _output_option(_force_option(command))
