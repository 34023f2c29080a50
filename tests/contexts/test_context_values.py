"""Text and values come back as they were, or are refused; the same in every place that keeps them."""

import datetime as dt
import decimal
import fractions
import os
import subprocess
import sys
import uuid
from collections import defaultdict
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from cleveragents import ContextManager
from cleveragents.errors import InvalidValueError

PLACES = ["message metadata", "parts", "state", "global context", "metadata"]


def keep(context, place, value):
    """Store ``value`` under the key ``v`` in one of the places, and give back what is there after it was read again."""
    if place == "message metadata":
        context.add_message("user", "x", {"v": value})
    elif place == "parts":
        context.add_message("user", [{"v": value}])
    else:
        getattr(context, f"update_{place.replace(' ', '_')}")({"v": value})
    again = ContextManager.open(context.name, context.directory.parent)
    if place == "message metadata":
        return again.messages[-1].metadata["v"]
    if place == "parts":
        return again.messages[-1].content[0]["v"]
    return getattr(again, place.replace(" ", "_"))["v"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "2026-01-01T00:00:00+00:00"),
        (decimal.Decimal("0.10"), "0.10"),
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        ((1, 2), [1, 2]),
        (defaultdict(list, {"a": [1]}), {"a": [1]}),
        (np.float64(0.5), 0.5),
        (np.int64(3), 3),
        (2**100, 2**100),
        (None, None),
        ("\0\u2028\ud83c\udf89\ufeff", "\0\u2028🎉\ufeff"),
        ("a\ud800b", "a\ufffdb"),
    ],
    ids=repr,
)
def test_c34_c35_c37_one_rule_converts_values_in_every_place(context, place, value, stored):
    kept = keep(context, place, value)
    assert kept == stored
    assert type(kept) is type(stored)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "value",
    [b"x", {3}, fractions.Fraction(1, 3), float("nan"), {1: "a", "1": "b"}, object(), {"items": [0, {"fn": len}]}],
    ids=lambda value: repr(value)[:20],
)
def test_c34_c37_c38_what_cannot_be_kept_is_refused_with_its_path_and_changes_nothing(context, place, value):
    with pytest.raises(InvalidValueError) as caught:
        keep(context, place, value)
    assert "v" in caught.value.path
    if isinstance(value, dict) and "items" in value:
        assert caught.value.path.endswith("v.items[1].fn")
    assert not context.exists()


def test_c31_content_in_parts_keeps_its_structure_and_reads_as_text(context, root, tmp_path):
    parts = [{"text": "what is this?"}, {"image": "data:image/png;base64,AAAAAAAAAAAAAAAAAA"}]
    context.add_message("user", parts)
    context.export_to(tmp_path / "export.json")
    again = ContextManager.import_from(tmp_path / "export.json", "again", root)
    assert again.messages[0].content == context.messages[0].content == parts
    assert again.messages[0].text == "what is this? [image]"
    assert again.formatted_history().endswith("user: what is this? [image]")


TEXTS = [
    "",
    "W\0s\0l\0",
    "Привет 🎉",
    "a\r\nb\rc\n",
    "\u202eright to left",
    "e\u0301 and é",
    " \t",
    '{"role":"user"}',
    "\\ud800",
    "x" * 10_000_000,
]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: repr(text)[:20])
def test_c26_c28_text_survives_saving_export_and_import_byte_for_byte(context, root, tmp_path, text):
    context.add_message("user", text, {"k": text, text[:100]: 1})
    context.export_to(tmp_path / "export.json")
    again = ContextManager.import_from(tmp_path / "export.json", "again", root)
    again.add_message("assistant", "after")
    assert again.messages[0] == context.messages[0]
    assert again.messages[0].content == text
    assert again.messages[0].metadata == {"k": text, text[:100]: 1}
    assert again.export()["messages"][0] == context.export()["messages"][0]


def test_a_lone_surrogate_is_cleaned_once_where_text_enters(context):
    given = b"caf\xe9".decode("utf-8", "surrogateescape")
    stored = context.add_message("tool", given, {"k\udce9": given}).content
    assert stored == "caf\ufffd"
    context.add_message("user", f"quoting {stored!r}")
    assert context.messages[0].metadata == {"k\ufffd": "caf\ufffd"}
    assert context.messages[1].content == f"quoting {stored!r}"


C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_c28_the_locale_does_not_matter_for_what_is_stored_nor_for_names(root):
    program = """
import sys
from pathlib import Path
from cleveragents import ContextManager, list_contexts
root = Path(sys.argv[1])
context = ContextManager("\\u041f\\u0440\\u0438\\u0432\\u0435\\u0442", root)
assert context.messages[-1].content == "\\u041f\\u0440\\u0438\\u0432\\u0435\\u0442 \\U0001f389"
context.add_message("assistant", "\\xe9 \\U0001f389", {"\\xe9": 1})
context.update_state({"\\xe9": "\\U0001f389"})
context.export_to(root / "export.json")
ContextManager.import_from(root / "export.json", "\\xe9", root)
with context.turn():
    context.copy("\\xe4").rename("\\xf6")
print(ascii(list_contexts(root)))
"""
    ContextManager("Привет", root).add_message("user", "Привет 🎉")
    done = subprocess.run(
        [sys.executable, "-c", program, str(root)],
        capture_output=True,
        text=True,
        env=os.environ | C_LOCALE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ascii(["é", "ö", "Привет"]) + "\n"
    for name in ("Привет", "é", "ö"):
        context = ContextManager.open(name, root)
        assert [message.content for message in context.messages] == ["Привет 🎉", "é 🎉"]
        assert context.state == {"é": "🎉"}


def test_c40_a_time_is_the_same_instant_in_every_zone(root):
    moments = [
        dt.datetime(2026, 10, 25, 2, 30, fold=fold, tzinfo=ZoneInfo("Europe/Berlin")).astimezone(dt.UTC)
        for fold in (0, 1)
    ]
    assert moments[1] - moments[0] == dt.timedelta(hours=1)
    write = """
import sys, datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo
from cleveragents import ContextManager
context = ContextManager("talk", Path(sys.argv[1]))
for fold in (0, 1):
    moment = dt.datetime(2026, 10, 25, 2, 30, fold=fold, tzinfo=ZoneInfo("Europe/Berlin"))
    context.add_message("user", "x", timestamp=moment)
"""
    read = """
import sys
from pathlib import Path
from cleveragents import ContextManager
context = ContextManager("talk", Path(sys.argv[1]))
print(*[message.timestamp.isoformat() for message in context.messages], context.formatted_history(), sep="\\n")
"""
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program, str(root)],
            capture_output=True,
            check=True,
            text=True,
            env=os.environ | {"TZ": zone},
        ).stdout
        for program, zone in ((write, "Asia/Kolkata"), (read, "America/Los_Angeles"))
    ]
    assert outputs[1].splitlines() == [
        *[moment.isoformat() for moment in moments],
        "[2026-10-25 00:30:00 UTC] user: x",
        "[2026-10-25 01:30:00 UTC] user: x",
    ]
