"""Arguments as they were typed, whatever the locale."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click


def typed_text(argument: str) -> str:
    """An argument as it was typed: where the locale is not UTF-8, Python decodes other bytes to surrogates."""
    return os.fsencode(argument).decode("utf-8", "surrogateescape")


def as_typed(_ctx: click.Context, _param: click.Parameter, value: str | tuple[str, ...] | None) -> object:
    """``typed_text`` as the callback of an argument or an option."""
    if isinstance(value, tuple):
        return tuple(map(typed_text, value))
    return None if value is None else typed_text(value)
