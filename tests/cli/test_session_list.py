"""``cleveragents session list``: which sessions, in which order, and how they are shown."""

import datetime as dt
import json

import pytest

from cleveragents import SessionService
from cleveragents.sessions.open import open_database
from cleveragents.sessions.sql.store import SqlSessionStore
from support.command import ok, one_line
from support.session_documents import checked, listed

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)


def test_c86_the_newest_activity_comes_first(run_session, store):
    a, b, c = (store.create().session_id for _ in range(3))
    store.append(a, "user", "x")
    assert listed(run_session("list", "--format", "json")) == [a, c, b]
    assert listed(run_session("list", "--limit", "1", "--format", "json")) == [a]
    assert ok(run_session("show", "last")).startswith(f"session id: {a}\n")
    assert [line.split()[0] for line in ok(run_session("list")).splitlines()] == ["ID", a, c, b]


def test_a_list_goes_on_after_a_session_and_says_so(run_session, store):
    made = [store.create().session_id for _ in range(5)][::-1]
    first = run_session("list", "--limit", "2", "--format", "json")
    assert listed(first) == made[:2]
    assert f"--after {made[1]}" in first.stderr
    last = run_session("list", "--after", made[1].lower(), "--format", "json")
    assert listed(last) == made[2:]
    assert last.stderr == ""
    lines = ok(run_session("list", "--limit", "2", "--format", "jsonl")).splitlines()
    assert [checked(json.loads(line), "summary")["session_id"] for line in lines] == made[:2]


def test_a_list_is_narrowed_by_actor_tag_namespace_and_time(run_session, home):
    database = open_database(f"sqlite:///{home / 'cleveragents.db'}")

    def at(moment):
        return SessionService(SqlSessionStore(database), now=lambda: moment)

    early = at(NOON).create("a/one", tags=["x"]).session_id
    late = at(NOON + dt.timedelta(days=1)).create("a/two", namespace="team", tags=["x", "y"]).session_id
    database.close()

    def found(*arguments):
        return listed(run_session("list", "--format", "json", *arguments))

    assert found("--actor", "a/one") == [early]
    assert found("--namespace", "team") == [late]
    assert found("--tag", "x") == [late, early]
    assert found("--tag", "x", "--actor", "a/two") == [late]
    assert found("--since", "2026-03-02") == [late]
    assert found("--since", "2026-03-01T12:00:00.000001") == [late]
    assert found("--since", "2026-03-01T14:00+02:00") == [late, early]
    assert found("--until", "2026-03-01") == [early]
    assert found("--until", "2026-03-01T12:00") == []
    assert found("--until", "2026-03-02") == [late, early]
    assert "no session matches" in run_session("list", "--tag", "z").stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--limit", "-1"],
        ["--limit", "ten"],
        ["--since", "yesterday"],
        ["--until", "2026-13-01"],
        ["--until", "9999-12-31"],
        ["--actor", "A B"],
        ["--namespace", "a/b"],
        ["--tag", " "],
        ["--after", "x!"],
        ["--format", "yaml"],
    ],
    ids=" ".join,
)
def test_c85_what_no_list_can_be_narrowed_to_is_wrong_usage(run_session, home, arguments):
    one_line(run_session("list", *arguments), 2)
    assert not home.exists()


def test_c85_limits_of_zero_and_beyond_the_end(run_session, talk):
    assert listed(run_session("list", "--limit", "0", "--format", "json")) == []
    assert listed(run_session("list", "--limit", str(10**9), "--format", "json")) == [talk]
    assert listed(run_session("list", "--after", talk, "--format", "json")) == []
    for name, option in (("show", "--last"), ("tail", "-n")):
        one_line(run_session(name, talk, option, "-1"), 2)
        one_line(run_session(name, talk, option, "ten"), 2)
        assert ok(run_session(name, talk, option, "0", "--format", "jsonl")) == ""
        assert len(ok(run_session(name, talk, option, str(10**9), "--format", "jsonl")).splitlines()) == 5


def test_a_session_without_a_title_shows_its_first_words(run_session, store):
    untitled, titled = store.create().session_id, store.create(title="Mine").session_id
    store.append(untitled, "assistant", "Hello")
    for session_id in (untitled, titled):
        store.append(session_id, "user", f"When does\n{'the train ' * 20}leave?\x07")
        store.append(session_id, "user", "And from where?")
    table = ok(run_session("list"))
    assert '"When does the train' in table
    assert "Mine" in table
    found = {row["session_id"]: row for row in json.loads(ok(run_session("list", "--format", "json")))}
    assert found[untitled]["title"] is None
    assert found[untitled]["first_words"] == f"When does {'the train ' * 20}"[:79] + "…"
    copy = store.import_(store.export(untitled)).session_id
    assert "first_words" not in store.export(copy)
    assert store.summary(copy).first_words == found[untitled]["first_words"]
