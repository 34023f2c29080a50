"""docs/architecture.md leads to files that are there, and leaves no room out."""

import re
from pathlib import Path

from support.pages import page

PACKAGE = Path(__file__).parents[2] / "src" / "cleveragents"
PAGE = page("architecture.md")
NAMED = re.compile(r"`((?:\w+/)*(?:\w+\.(?:py|sql)|\w+/))`")


def named(text):
    return set(NAMED.findall(text)) - {"test_startup.py"}


def test_every_file_and_folder_that_is_named_is_there():
    found = named(PAGE.text)
    assert len(found) > 60
    assert {name for name in found if not (PACKAGE / name).exists()} == set()


def test_every_room_has_its_line():
    rooms = {path.name for path in PACKAGE.iterdir() if not path.name.startswith("_") and path.suffix in {"", ".py"}}
    assert rooms - {name.rstrip("/") for name in named(PAGE.section("The rooms").text)} == set()


def test_twenty_everyday_changes_have_their_file():
    _, _, *rows = re.findall(r"^\| .*", PAGE.section("Where do I change …").text, flags=re.MULTILINE)
    assert len(rows) >= 20
    assert [row for row in rows if not named(row)] == []
