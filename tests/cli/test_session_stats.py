"""``cleveragents session stats``."""

import json
import re

from support.command import ok
from support.session_documents import checked
from support.terminal import on_a_terminal


def test_stats_as_json_have_everything(run_session, talk, store):
    store.create()
    document = checked(json.loads(ok(run_session("stats", "--format", "json"))), "stats")
    assert document["total"]["sessions"] == 2
    assert document["total"]["input_tokens"] == 11
    assert (document["total"]["estimated_cost"], document["total"]["cost_complete"]) == (0.25, False)
    assert [row["actor"] for row in document["actor"]] == ["team/bot", None]
    assert [row["llm"] for row in document["llm"]] == ["x:1", "x:2"]
    lines = [json.loads(line) for line in ok(run_session("stats", "--format", "jsonl")).splitlines()]
    assert lines == [{"by": by, **row} for by in ("day", "actor", "llm") for row in document[by]]


def test_stats_have_bars_on_a_terminal_only(run_session, talk, home):
    table = ok(run_session("stats"))
    assert re.search(r"^team/bot +1 +5 +2 +11 +7 +0\.2500 or more$", table, re.MULTILINE), table
    assert "█" not in table
    shown = on_a_terminal("session", "stats", home=home)
    assert re.search(r"^x:1 .* █{20}\r$", shown, re.MULTILINE), shown
    assert re.search(r"^x:2 .* █{4}\r$", shown, re.MULTILINE), shown
