"""Bars on stderr that show a person at a terminal how far a long command is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

_DRAWN = 1000
"""Times at most that a bar is drawn."""


@contextmanager
def counting_bar(what: str, length: int, *, shown: bool) -> Iterator[Callable[[], None]]:
    """A function to be called when each of the ``length`` things of ``what`` is done."""
    if not shown or not sys.stderr.isatty():
        yield lambda: None
        return
    # To draw it for each of a million takes longer than what is done.
    steps = max(1, length // _DRAWN)
    with click.progressbar(length=length, label=what, file=sys.stderr, show_pos=True, update_min_steps=steps) as bar:
        yield lambda: bar.update(1)


@contextmanager
def step_bar(what: str, count: int, *, shown: bool) -> Iterator[Callable[[str], None]]:
    """A function to be called with its name when each of the ``count`` steps of ``what`` begins."""
    if not shown or not sys.stderr.isatty():
        yield lambda _step: None
        return
    with click.progressbar(length=count, label=what, file=sys.stderr, item_show_func=lambda step: step) as bar:
        begun = 0

        def begin(step: str) -> None:
            nonlocal begun
            bar.current_item = step
            bar.make_step(min(begun, 1))
            bar.render_progress()
            begun += 1

        yield begin
        bar.current_item = None
        bar.make_step(1)
        bar.render_progress()
