"""The contract of a session store, reading: each test runs on SQLite and on PostgreSQL, without a branch for either."""

import dataclasses
import datetime as dt
import itertools
import subprocess
import sys
import time

import pytest

from cleveragents import SessionService, errors, open_sessions
from cleveragents.sessions.open import open_database
from cleveragents.sessions.sql.store import SqlSessionStore
from cleveragents.values.ids import new_ulid
from support.sessions import PLANS, ids, texts, user, with_everything


class TestReading:
    def test_c49_the_last_messages_are_the_newest_oldest_first(self, sessions):
        session_id = sessions.create().session_id
        sessions.append_all(session_id, user(*[f"m{number}" for number in range(1, 11)]))
        assert texts(sessions.last_messages(session_id, 3)) == ["m8", "m9", "m10"]
        assert sessions.last_messages(session_id, 0) == []
        assert texts(sessions.last_messages(session_id, 99)) == texts(sessions.messages(session_id))

    @pytest.mark.parametrize("value", [-1, -5, "ten", 1.5, True])
    def test_c85_limits_that_are_negative_or_no_number_are_refused(self, sessions, value):
        session_id = sessions.create().session_id
        for read in (
            lambda: sessions.messages(session_id, limit=value),
            lambda: sessions.messages(session_id, offset=value),
            lambda: sessions.last_messages(session_id, value),
            lambda: sessions.list(limit=value),
        ):
            with pytest.raises(errors.InvalidValueError):
                read()

    def test_c85_zero_is_an_empty_page_and_the_end_is_no_error(self, sessions):
        session_id = sessions.create().session_id
        sessions.append_all(session_id, user("a", "b", "c"))
        for limit, offset, expected in (
            (0, 0, []),
            (1, 0, ["a"]),
            (10**9, 0, ["a", "b", "c"]),
            (10**30, 1, ["b", "c"]),
            (None, 3, []),
            (5, 3, []),
            (5, 10**30, []),
            (0, 10**30, []),
        ):
            assert texts(sessions.messages(session_id, limit=limit, offset=offset)) == expected
        assert sessions.count(session_id) == 3
        assert len(sessions.last_messages(session_id, 10**30)) == 3
        assert sessions.list(limit=0) == []
        assert len(sessions.list(limit=10**30)) == 1

    def test_the_whole_session_and_its_parts_agree(self, sessions):
        session_id = with_everything(sessions)
        whole, summary = sessions.get(session_id), sessions.summary(session_id)
        assert whole.messages == sessions.messages(session_id)
        for field in dataclasses.fields(summary):
            if field.name not in {"activity", "first_words"}:
                assert getattr(summary, field.name) == getattr(whole, field.name), field.name
        assert sessions.list() == [summary]


class TestIds:
    MALFORMED = (
        "notavalidulidnotavalidulid",
        "!" * 26,
        "01ARZ3NDEKTSV4RRFFQ69G5FIL",
        "01ARZ3NDEKTSV4RRFFQ69G5FA",
        "01ARZ3NDEKTSV4RRFFQ69G5FAVX",
        " 01ARZ3NDEKTSV4RRFFQ69G5FAV ",
        "\uff10" * 26,
        "",
        "81ARZ3NDEKTSV4RRFFQ69G5FAV",
    )

    def test_c88_a_malformed_id_is_not_the_same_as_an_unknown_one(self, sessions):
        known = sessions.create().session_id
        calls = (
            sessions.get,
            sessions.summary,
            sessions.delete,
            sessions.messages,
            sessions.count,
            sessions.export,
            sessions.turn,
            lambda text: sessions.last_messages(text, 1),
            lambda text: sessions.append(text, "user", "hello"),
            lambda text: sessions.add_usage(text, 1, 1, 0.1),
            lambda text: sessions.link_plan(text, PLANS[0]),
            lambda text: sessions.update(text, title="new"),
            lambda text: sessions.list(after=text),
        )
        for call in calls:
            for text in self.MALFORMED:
                with pytest.raises(errors.InvalidIdError, match="not a valid id"):
                    call(text)
            with pytest.raises(errors.SessionNotFoundError, match="01ARZ3NDEKTSV4RRFFQ69G5FAV"):
                call("01ARZ3NDEKTSV4RRFFQ69G5FAV")
        for text in self.MALFORMED:
            with pytest.raises(errors.InvalidIdError):
                sessions.link_plan(known, text)

    def test_c89_an_id_in_lower_case_is_the_same_id(self, sessions):
        session_id = with_everything(sessions)
        lower = session_id.lower()
        assert sessions.get(lower) == sessions.get(session_id)
        sessions.append(lower, "user", "four")
        sessions.link_plan(lower, PLANS[0].lower(), "done")
        assert sessions.summary(session_id).linked_plan_ids == PLANS
        assert ids(sessions.list(after=lower)) == []
        sessions.delete(lower)
        assert sessions.list() == []

    def test_c44_lists_follow_the_order_of_creation(self, sessions, database_url):
        mine = [sessions.create().session_id for _ in range(200)]
        assert ids(sessions.list()) == mine[::-1]
        child = (
            "import sys; from cleveragents import open_sessions\n"
            "with open_sessions(sys.argv[1]) as sessions:\n"
            "    for _ in range(50): print(sessions.create().session_id)\n"
        )
        children = [
            subprocess.Popen([sys.executable, "-c", child, database_url], stdout=subprocess.PIPE, text=True)
            for _ in range(4)
        ]
        made = [process.communicate(timeout=120)[0].split() for process in children]
        listed = ids(sessions.list())
        assert sorted(listed) == sorted([*mine, *itertools.chain(*made)])
        for created in [mine, *made]:
            assert [each for each in listed if each in set(created)] == created[::-1]
        assert set(listed[-200:]) == set(mine)


class TestOrder:
    def test_c86_the_newest_activity_comes_first(self, sessions):
        a, b, c = (sessions.create().session_id for _ in range(3))
        sessions.append(a, "user", "hello")
        assert ids(sessions.list()) == [a, c, b]
        assert ids(sessions.list(limit=1)) == [a]
        sessions.add_usage(b, 1, 1, None)
        sessions.update(c, title="t")
        assert ids(sessions.list()) == [c, b, a]

    def test_pages_follow_each_other_without_gap_or_repetition(self, sessions):
        made = [sessions.create().session_id for _ in range(7)][::-1]
        for size in (1, 2, 3, 7, 8):
            seen, after = [], None
            while page := sessions.list(limit=size, after=after):
                assert len(page) <= size
                seen += ids(page)
                after = page[-1]
            assert seen == made
        assert ids(sessions.list(after=made[2])) == made[3:]

    def test_a_page_goes_on_where_it_stopped_whatever_happened_meanwhile(self, sessions):
        made = [sessions.create().session_id for _ in range(6)][::-1]
        first = sessions.list(limit=2)
        sessions.append(made[1], "user", "moves to the top")
        sessions.delete(made[0])
        sessions.create()
        assert ids(sessions.list(after=first[-1])) == made[2:]

    def test_lists_can_be_narrowed_by_actor_namespace_and_tag(self, sessions):
        a = sessions.create("team/bot", tags=["x", "y"]).session_id
        b = sessions.create("team/bot", namespace="other", tags=["y"]).session_id
        c = sessions.create("team/cat").session_id
        assert ids(sessions.list(actor_name="team/bot")) == [b, a]
        assert ids(sessions.list(namespace="local")) == [c, a]
        assert ids(sessions.list(tag="y")) == [b, a]
        assert ids(sessions.list(tag="y", namespace="local", actor_name="team/bot")) == [a]
        assert ids(sessions.list(tag="y", limit=1)) == [b]
        assert ids(sessions.list(tag="y", after=b)) == [a]
        assert sessions.list(tag="z") == []
        assert [summary.tags for summary in sessions.list()] == [[], ["y"], ["x", "y"]]

    def test_c23_lists_take_only_names_that_could_have_been_created(self, sessions):
        for name in ("/bot", "team/", "Team/Bot", "team/bot\n"):
            with pytest.raises(errors.SessionValidationError):
                sessions.create(name)
            with pytest.raises(errors.SessionValidationError):
                sessions.list(actor_name=name)

    def test_c43_a_clock_that_steps_back_changes_no_order(self, database_url, monkeypatch):
        clock = [dt.datetime(2026, 5, 1, 12, tzinfo=dt.UTC)]
        with SessionService(SqlSessionStore(open_database(database_url)), now=lambda: clock[0]) as sessions:
            a = sessions.create().session_id
            clock[0] -= dt.timedelta(hours=1)
            hour_ago = time.time_ns() - 3_600_000_000_000
            monkeypatch.setattr(time, "time_ns", lambda: hour_ago)
            b = sessions.create().session_id
            assert ids(sessions.list()) == [b, a]
            sessions.append(a, "user", "from the past")
            assert ids(sessions.list()) == [a, b]
            sessions.append(b, "user", "and on")
            assert ids(sessions.list()) == [b, a]
            for summary in sessions.list():
                assert summary.updated_at >= summary.created_at
            assert len({a, b}) == 2


class TestMissingDatabase:
    def test_reading_makes_nothing(self, tmp_path):
        path = tmp_path / "home" / "sessions.db"
        with open_sessions(f"sqlite:///{path}") as sessions:
            assert sessions.list() == []
            for read in (sessions.get, sessions.messages, sessions.count, sessions.summary):
                with pytest.raises(errors.SessionNotFoundError):
                    read(new_ulid())
        assert not path.parent.exists()

    def test_reading_a_server_without_a_schema_makes_nothing(self, postgres):
        url = postgres.new_database()
        with open_sessions(url) as sessions:
            assert sessions.list() == []
            with pytest.raises(errors.SessionNotFoundError):
                sessions.get(new_ulid())
        database = open_database(url)
        assert database.status().schema is None
        database.close()
