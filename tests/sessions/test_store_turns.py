"""The contract of a session store, turns: each test runs on SQLite and on PostgreSQL, without a branch for either."""

import contextlib
import subprocess
import sys
import threading

import pytest

from cleveragents import errors, open_sessions
from support.frozen import run_script


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

    def test_a_turn_that_lost_its_lock_stores_no_more(self, sessions, database_url):
        session_id = sessions.create().session_id
        with sessions.turn(session_id):
            sessions.append(session_id, "user", "first")
            # What another turn does when it begins.
            run_script(database_url, "UPDATE sessions SET turn_number = turn_number + 1")
            with pytest.raises(errors.SessionBusyError, match="taken over by another run") as refusal:
                sessions.append(session_id, "assistant", "too late")
            assert "\n" not in str(refusal.value)
        sessions.append(session_id, "user", "outside a turn")
        with sessions.turn(session_id):
            sessions.append(session_id, "assistant", "in a new one")
        stored = [message.content for message in sessions.messages(session_id)]
        assert stored == ["first", "outside a turn", "in a new one"]

    def test_what_guards_turns_is_not_exported(self, sessions):
        session_id = sessions.create().session_id
        before = sessions.export(session_id)["checksum"]
        with sessions.turn(session_id):
            pass
        assert sessions.export(session_id)["checksum"] == before
