"""The contract of a session store, writing: each test runs on SQLite and on PostgreSQL, without a branch for either."""

import dataclasses
import datetime as dt
import subprocess
import sys
import threading

import pytest

from cleveragents import MessageDraft, SessionService, TokenUsage, errors, open_sessions
from cleveragents.sessions.open import open_database
from cleveragents.sessions.sql.store import SqlSessionStore
from support.sessions import PLANS, rows_in_tables, texts, user, with_everything


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
        for usage in ((2**63, 0, 0), (-1, 0, 0), (0, 0, float("nan")), (0, 0, 10**12)):
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
