"""A PostgreSQL server that is out of reach, refuses, restarts or is held up: one clear error, nothing half written."""

import subprocess
import sys

import psycopg
import pytest

from cleveragents import errors, open_sessions
from cleveragents.sessions.open import open_database
from support.sessions import one_line


class TestServer:
    def test_a_server_out_of_reach_is_named(self):
        with open_sessions("postgresql+psycopg://user:hush@127.0.0.1:1/chats") as sessions:
            for call in (sessions.list, sessions.create):
                with pytest.raises(errors.SessionStorageError) as failure:
                    call()
                assert "hush" not in one_line(failure, "127.0.0.1:1/chats")

    def test_a_wrong_password_is_told_without_showing_it(self, postgres):
        postgres.execute("CREATE ROLE with_password LOGIN PASSWORD 'right'")
        url = postgres.new_database()
        name = url.partition("?")[0].rpartition("/")[2]
        postgres.execute(f"ALTER DATABASE {name} OWNER TO with_password")
        with open_sessions(postgres.url(name, "with_password", "right")) as sessions:
            sessions.create()
        with (
            open_sessions(postgres.url(name, "with_password", "wrong-word")) as sessions,
            pytest.raises(errors.SessionStorageError) as failure,
        ):
            sessions.list()
        assert "wrong-word" not in one_line(failure, name, "password")

    def test_a_malformed_url_is_told_without_its_password(self):
        with (
            open_sessions("postgresql://u:pass@h/db?nonsense=1") as sessions,
            pytest.raises(errors.SessionStorageError) as failure,
        ):
            sessions.list()
        assert "pa" not in one_line(failure, "h/db").partition("h/db")[0]

    def test_the_first_call_after_a_restart_works(self, postgres, postgres_url):
        with open_sessions(postgres_url) as sessions, open_sessions(postgres_url) as other:
            session_id = sessions.create().session_id
            other.append(session_id, "user", "before")
            postgres.restart()
            assert sessions.append(session_id, "user", "after").sequence == 1
            postgres.restart()
            assert [message.content for message in sessions.messages(session_id)] == ["before", "after"]
            postgres.restart()
            assert other.get(session_id).message_count == 2
            assert other.add_usage(session_id, 1, 1, None).input_tokens == 1

    def interrupted_append(self, database, session_id, interrupt):
        with database.writing() as db:
            db.rows(
                database.statements["take_numbers"], {"session_id": session_id, "count": 1, "now": 1, "turn_number": 0}
            )
            interrupt()
            db.rows("SELECT 1", {})

    def test_a_server_that_goes_away_in_the_middle_leaves_nothing_half_written(self, postgres, postgres_url):
        database = open_database(postgres_url)
        with open_sessions(postgres_url) as sessions:
            session_id = sessions.create().session_id
            with pytest.raises(errors.SessionStorageError) as failure:
                self.interrupted_append(database, session_id, postgres.restart)
            one_line(failure, database.name)
            assert sessions.count(session_id) == 0
            sessions.append(session_id, "user", "x")
        database.close()

    def test_a_row_that_stays_locked_is_busy(self, postgres_url):
        with open_sessions(f"{postgres_url}&busy_timeout=0.2") as sessions:
            session_id = sessions.create().session_id
            with psycopg.connect(postgres_url.replace("+psycopg", "")) as other:
                other.execute("SELECT * FROM sessions WHERE id = %s FOR UPDATE", [session_id])
                with pytest.raises(errors.SessionBusyError, match=r"0\.2 seconds"):
                    sessions.append(session_id, "user", "x")
                # Other sessions are not held up.
                sessions.append(sessions.create().session_id, "user", "x")
            assert sessions.append(session_id, "user", "x").sequence == 0

    def test_a_missing_driver_is_named(self):
        program = (
            "import sys; sys.modules['psycopg'] = None\n"
            "from cleveragents import errors, open_sessions\n"
            "try: open_sessions('postgresql://h/db').list()\n"
            "except errors.SessionStorageError as error: print(error)\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert "cleveragents[postgres]" in done.stdout
