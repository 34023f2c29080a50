"""Tables line up on a terminal, whatever text is in them."""

import re

from cleveragents import ContextManager
from support.command import ok

TITLES = {
    "plain": 5,
    "日本語": 6,
    "한국어 text": 11,
    "ｱｲ": 2,
    "🎉 party": 8,
    "👩‍👩‍👧 family": 9,
    "👍🏽": 2,
    "e\u0301te\u0301": 3,
    "zero\u200b": 4,
    "Ärger": 5,
}
"""Titles, and the columns of a terminal that each takes."""


def test_columns_line_up_by_the_width_that_a_terminal_gives_to_text(run_session, store):
    for title in TITLES:
        store.create("a/b", title=title, tags=["x"])
    heading, *rows = ok(run_session("list")).splitlines()
    assert heading.endswith("TITLE        TAGS")
    for row, (title, width) in zip(rows, reversed(TITLES.items()), strict=True):
        assert row.endswith(f"  a/b    {title}{' ' * (13 - width)}x")


def test_names_of_contexts_line_up_too(run_context, root):
    for name in ("plain", "会议记录", "นี้"):
        ContextManager(name, root)
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"
    shown = ok(run_context("list"))
    for start in ("plain     ", "会议记录  ", "นี้         "):
        assert re.search(f"^{start}{time}  0$", shown, re.MULTILINE), shown


def test_text_that_would_break_a_line_does_not(run_session, store):
    for title in ("two\nlines", "a\ttab", "\x1b[31m"):
        store.create("a/b", title=title, tags=["x"])
    rows = ok(run_session("list")).splitlines()[1:]
    assert [row.rpartition("a/b")[2] for row in rows] == ["    \\x1b[31m   x", "    a tab      x", "    two lines  x"]


def test_where_a_console_shows_replacements_these_line_up(run_session, store):
    for title in TITLES:
        store.create("a/b", title=title, tags=["x"])
    rows = ok(run_session("list", env={"PYTHONIOENCODING": "ascii"})).splitlines()[1:]
    assert len(rows) == len(TITLES)
    assert len({row.rindex("x") for row in rows}) == 1
