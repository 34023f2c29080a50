"""The contract of a session store: every test runs on SQLite and on PostgreSQL, without a branch for either."""

import contextlib
import dataclasses
import datetime as dt
import itertools
import subprocess
import sys
import threading
import time

import pytest

from cleveragents import MessageDraft, SessionService, TokenUsage, errors, open_sessions
from cleveragents.sessions.open import open_database
from cleveragents.sessions.sql.store import SqlSessionStore
from cleveragents.values.ids import new_ulid

PLANS = ["01BX5ZZKBKACTAV9WEVGEMMVRZ", "01ARZ3NDEKTSV4RRFFQ69G5FAV", "01BX5ZZKBKACTAV9WEVGEMMVS0"]
TABLES = ("sessions", "messages", "usage_entries", "linked_plans", "session_tags")


def user(*texts):
    return [MessageDraft("user", text) for text in texts]


def texts(messages):
    return [message.content for message in messages]


def ids(summaries):
    return [summary.session_id for summary in summaries]


def rows_in_tables(url):
    """How many rows each table of the database holds."""
    database = open_database(url)
    counts = {table: database.query(f"SELECT count(*) AS n FROM {table}", {})[0]["n"] for table in TABLES}  # noqa: S608
    database.close()
    return counts


def with_everything(sessions, actor="team/bot", tags=("a", "b")):
    session_id = sessions.create(actor, tags=tags).session_id
    sessions.append_all(session_id, user("one", "two", "three"))
    for plan in PLANS:
        sessions.link_plan(session_id, plan)
    sessions.add_usage(session_id, 10, 5, 0.1, llm="local")
    return session_id


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
            if field.name != "activity":
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


class TestAppending:
    def test_messages_that_belong_together_are_stored_together(self, sessions):
        session_id = sessions.create().session_id
        turn = [
            MessageDraft("user", "add"),
            MessageDraft("assistant", None, tool_calls=[{"id": "c1", "name": "add"}], agent="calc"),
            MessageDraft("tool", "3", tool_call_id="c1"),
        ]
        stored = sessions.append_all(session_id, turn)
        assert [message.sequence for message in stored] == [0, 1, 2]
        assert sessions.messages(session_id) == stored
        assert sessions.append_all(session_id, []) == []
        assert sessions.count(session_id) == 3

    def test_c07_a_writer_that_was_overtaken_is_told_and_writes_nothing(self, sessions, database_url):
        session_id = sessions.create().session_id
        with open_sessions(database_url) as other:
            other.append_all(session_id, user("mine", "too"), expected_sequence=0)
        with pytest.raises(errors.SessionConflictError, match=f"{session_id}.*message 0 .* it is 2"):
            sessions.append_all(session_id, user("x", "y"), expected_sequence=0)
        with pytest.raises(errors.SessionConflictError):
            sessions.append(session_id, "user", "x", expected_sequence=3)
        assert texts(sessions.messages(session_id)) == ["mine", "too"]
        assert sessions.append(session_id, "user", "x", expected_sequence=2).sequence == 2

    def test_c11a_a_fast_writer_is_never_refused_by_a_frozen_clock(self, database_url):
        frozen = dt.datetime(2026, 5, 1, tzinfo=dt.UTC)
        with SessionService(SqlSessionStore(open_database(database_url)), now=lambda: frozen) as sessions:
            session_id = sessions.create().session_id
            for number in range(50):
                assert sessions.append(session_id, "user", "x", expected_sequence=number).sequence == number
            assert {message.created_at for message in sessions.messages(session_id)} == {frozen}

    def test_what_the_model_refuses_leaves_no_trace(self, sessions):
        session_id = sessions.create().session_id
        before = sessions.summary(session_id)
        for role, content, fields in (
            ("user", " ", {}),
            ("robot", "x", {}),
            ("tool", "x", {}),
            ("user", None, {}),
            ("user", "x", {"metadata": {"a": object()}}),
            ("user", "x", {"expected_sequence": -1}),
        ):
            with pytest.raises(errors.InvalidInputError):
                sessions.append(session_id, role, content, **fields)
        assert sessions.summary(session_id) == before

    def test_threads_share_a_service(self, sessions):
        session_id = sessions.create().session_id
        failures = []

        def write():
            try:
                for _ in range(10):
                    sessions.append(session_id, "user", "x")
                    sessions.add_usage(session_id, 1, 1, 0.001)
                    sessions.last_messages(session_id, 2)
            except Exception as error:  # noqa: BLE001 - shown by the assertion
                failures.append(error)

        threads = [threading.Thread(target=write) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert [message.sequence for message in sessions.messages(session_id)] == list(range(80))
        assert sessions.summary(session_id).token_usage == TokenUsage(80, 80, 0.08)

    def test_a_forked_child_and_its_parent_both_go_on(self, sessions, database_url):
        session_id = sessions.create().session_id
        program = (
            "import os, sys; from cleveragents import open_sessions\n"
            "sessions = open_sessions(sys.argv[1])\n"
            "sessions.append(sys.argv[2], 'user', 'before')\n"
            "child = os.fork()\n"
            "for _ in range(30): sessions.append(sys.argv[2], 'user', 'parent' if child else 'child')\n"
            "if child: assert os.waitpid(child, 0)[1] == 0; print(len(sessions.messages(sys.argv[2])))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, database_url, session_id],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "61\n", "")
        assert sorted(texts(sessions.messages(session_id))) == ["before", *["child"] * 30, *["parent"] * 30]


class TestChanging:
    def test_only_what_is_given_changes(self, sessions):
        session_id = with_everything(sessions)
        before = sessions.summary(session_id)
        after = sessions.update(session_id, title="New title")
        assert after == sessions.summary(session_id)
        assert after == dataclasses.replace(
            before, title="New title", updated_at=after.updated_at, activity=after.activity
        )
        assert after.updated_at >= before.updated_at
        after = sessions.update(session_id, automation_level="manual", tags=["c"], metadata={"k": 1})
        assert (after.title, after.automation_level, after.tags, after.metadata) == (
            "New title",
            "manual",
            ["c"],
            {"k": 1},
        )
        after = sessions.update(session_id, title=None, automation_level=None, tags=())
        assert (after.title, after.automation_level, after.tags) == (None, None, [])
        assert sessions.list(tag="c") == sessions.list(tag="a") == []

    def test_metadata_of_several_writers_adds_up(self, sessions):
        session_id = sessions.create(metadata={"a": {"x": 1, "y": 2}, "b": 1}).session_id
        sessions.update(session_id, metadata={"a": {"x": 5}, "c": None})
        sessions.update(session_id, metadata={"d": 1}, removed=["b", ("a", "y")])
        assert sessions.summary(session_id).metadata == {"a": {"x": 5}, "c": None, "d": 1}

    def test_a_refused_change_changes_nothing(self, sessions):
        session_id = with_everything(sessions)
        before = sessions.summary(session_id)
        for change in (
            {"title": " "},
            {"automation_level": "auto"},
            {"tags": "abc"},
            {"metadata": [1]},
            {"metadata": {"a": {1}}},
        ):
            with pytest.raises(errors.InvalidInputError):
                sessions.update(session_id, **change)
        assert sessions.summary(session_id) == before

    def test_plans_keep_the_order_in_which_they_were_linked(self, sessions):
        session_id = sessions.create().session_id
        for plan in PLANS:
            sessions.link_plan(session_id, plan, "draft")
        sessions.link_plan(session_id, PLANS[1], state="open")
        found = sessions.summary(session_id).linked_plans
        assert [(plan.plan_id, plan.phase, plan.state) for plan in found] == [
            (PLANS[0], "draft", None),
            (PLANS[1], "draft", "open"),
            (PLANS[2], "draft", None),
        ]

    def test_c53_c55_the_ledger_outlives_the_process_and_knows_what_it_does_not_know(self, sessions, database_url):
        session_id = sessions.create().session_id
        for _ in range(2):
            sessions.add_usage(session_id, 100, 10, None, llm="acme-9")
        with open_sessions(database_url) as later:
            total = later.add_usage(session_id, 50, 5, 0.000_000_3, llm="known")
            assert total == TokenUsage(250, 25, 0.000_000_3, cost_complete=False)
            whole = later.get(session_id)
        assert whole.token_usage == total
        assert [(entry.llm, entry.estimated_cost) for entry in whole.usage_entries] == [
            ("acme-9", None),
            ("acme-9", None),
            ("known", 0.000_000_3),
        ]

    def test_usage_that_is_refused_leaves_no_entry(self, sessions):
        session_id = sessions.create().session_id
        sessions.add_usage(session_id, 2**63 - 1, 0, 1)
        before = sessions.get(session_id)
        for usage in ((1, 0, 0), (-1, 0, 0), (0, 0, float("nan")), (0, 0, 10**12)):
            with pytest.raises(errors.SessionValidationError):
                sessions.add_usage(session_id, *usage)
        assert sessions.get(session_id) == before


class TestDeleting:
    def test_c82_nothing_of_a_deleted_session_is_left_or_comes_back(self, sessions, database_url):
        session_id = with_everything(sessions)
        document = sessions.export(session_id)
        with sessions.turn(session_id):
            pass
        sessions.delete(session_id)
        assert set(rows_in_tables(database_url).values()) == {0}
        again = sessions.import_(document).session_id
        assert texts(sessions.messages(again)) == ["one", "two", "three"]
        assert sessions.count(again) == 3

    def test_c83_deleting_many_leaves_no_orphans(self, sessions, database_url):
        for number in range(20):
            with_everything(sessions, f"team/bot{number % 2}")
        for summary in sessions.list(actor_name="team/bot1"):
            sessions.delete(summary.session_id)
        assert rows_in_tables(database_url) == {
            "sessions": 10,
            "messages": 30,
            "usage_entries": 10,
            "linked_plans": 30,
            "session_tags": 20,
        }
        for summary in sessions.list():
            sessions.delete(summary.session_id)
        assert set(rows_in_tables(database_url).values()) == {0}

    def test_a_turn_that_ends_after_its_session_was_deleted_says_so(self, sessions, database_url):
        session_id = with_everything(sessions)
        with sessions.turn(session_id):
            with open_sessions(database_url) as other:
                other.delete(session_id)
            for late in (
                lambda: sessions.append(session_id, "assistant", "the answer"),
                lambda: sessions.add_usage(session_id, 1, 1, 0.1),
                lambda: sessions.update(session_id, title="late"),
            ):
                with pytest.raises(errors.SessionNotFoundError, match=session_id):
                    late()
        assert sessions.list() == []
        assert set(rows_in_tables(database_url).values()) == {0}


class TestTurns:
    def test_a_second_run_waits_and_is_then_refused(self, sessions, database_url):
        session_id = sessions.create().session_id
        with sessions.turn(session_id), open_sessions(database_url) as other:
            with pytest.raises(errors.SessionBusyError, match=session_id), other.turn(session_id, wait=0.05):
                pass
            with other.turn(other.create().session_id, wait=0):
                pass
            other.append(session_id, "user", "a turn keeps no one from appending")
        with sessions.turn(session_id, wait=0):
            pass

    def test_a_waiting_run_gets_its_turn(self, sessions):
        session_id = sessions.create().session_id
        got, holding = threading.Event(), threading.Event()

        def second():
            holding.wait()
            with sessions.turn(session_id):
                got.set()

        thread = threading.Thread(target=second)
        thread.start()
        with sessions.turn(session_id):
            holding.set()
            assert not got.wait(0.1)
        assert got.wait(30)
        thread.join()

    def test_waiting_for_a_turn_can_be_cancelled(self, sessions):
        session_id = sessions.create().session_id
        cancelled, refused = threading.Event(), threading.Event()

        def second():
            with contextlib.suppress(errors.SessionBusyError), sessions.turn(session_id, wait=600, cancelled=cancelled):
                return
            refused.set()

        thread = threading.Thread(target=second)
        with sessions.turn(session_id):
            thread.start()
            assert not refused.wait(0.1)
            cancelled.set()
            assert refused.wait(30)
        thread.join()

    def test_a_turn_ends_with_its_process(self, sessions, database_url):
        session_id = sessions.create().session_id
        child = (
            "import sys, time; from cleveragents import open_sessions\n"
            "sessions = open_sessions(sys.argv[1])\n"
            "with sessions.turn(sys.argv[2]):\n"
            "    print('mine', flush=True); time.sleep(600)\n"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", child, database_url, session_id], stdout=subprocess.PIPE, text=True
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == "mine\n"
            with pytest.raises(errors.SessionBusyError), sessions.turn(session_id, wait=0.05):
                pass
            process.kill()
        with sessions.turn(session_id, wait=30):
            pass


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
