"""Turns on PostgreSQL: their locks, the server's limits, and a database that may only be read."""

import contextlib

import pytest

from cleveragents import errors, open_sessions
from support.sessions import one_line

HOLDERS = """
SELECT pg_terminate_backend(pid) FROM pg_locks
WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = '{name}')
"""


def name_of(url):
    return url.partition("?")[0].rpartition("/")[2]


def test_c125_a_turn_whose_connection_was_ended_is_told_and_stores_no_more(postgres):
    url = postgres.new_database()
    with open_sessions(url) as sessions, open_sessions(url) as other:
        session_id = sessions.create().session_id
        with sessions.turn(session_id):
            sessions.append(session_id, "user", "first")
            postgres.execute(HOLDERS.format(name=name_of(url)))
            with other.turn(session_id, wait=30):
                other.append(session_id, "user", "second")
                with pytest.raises(errors.SessionBusyError, match="taken over"):
                    sessions.append(session_id, "assistant", "of the first")
                other.append(session_id, "assistant", "of the second")
        assert [each.content for each in sessions.messages(session_id)] == ["first", "second", "of the second"]


def test_c125_no_time_out_of_the_server_ends_a_turn(postgres):
    url = postgres.new_database()
    name = name_of(url)
    with open_sessions(url) as before:
        session_id = before.create().session_id
    # For connections from now on, and longer than a busy machine takes between two statements.
    for setting in ("idle_session_timeout", "idle_in_transaction_session_timeout"):
        postgres.execute(f"ALTER DATABASE {name} SET {setting} = '400ms'")
    # Waiting, the other asks for longer than the time-out lasts.
    with (
        open_sessions(url) as sessions,
        open_sessions(url) as other,
        sessions.turn(session_id),
        pytest.raises(errors.SessionBusyError),
        other.turn(session_id, wait=1),
    ):
        pass


def test_turns_beyond_the_connections_of_the_server_are_refused_at_once(postgres):
    postgres.execute("CREATE ROLE few LOGIN CONNECTION LIMIT 5")
    url = postgres.url(name_of(postgres.new_database()), "few", "")
    postgres.execute(f"ALTER DATABASE {name_of(url)} OWNER TO few")
    with contextlib.ExitStack() as stack:
        ended = []
        for _ in range(8):
            sessions = stack.enter_context(open_sessions(url))
            try:
                session_id = sessions.create().session_id
                stack.enter_context(sessions.turn(session_id))
                sessions.append(session_id, "user", "x")
                ended.append("done")
            except errors.SessionBusyError as refusal:
                ended.append(str(refusal).partition(" has ")[2])
        assert ended == ["done"] * 2 + ["no connection left for another run; try again later"] * 6


def test_c128_a_read_only_database_can_be_read_and_says_so_when_it_is_written(postgres):
    url = postgres.new_database()
    with open_sessions(url) as sessions:
        session_id = sessions.create().session_id
        sessions.append(session_id, "user", "before")
    postgres.execute(f"ALTER DATABASE {name_of(url)} SET default_transaction_read_only = on")
    with open_sessions(url) as sessions:
        assert [each.session_id for each in sessions.list()] == [session_id]
        assert sessions.get(session_id).message_count == 1
        for write in (sessions.create, lambda: sessions.append(session_id, "user", "x")):
            with pytest.raises(errors.SessionStorageError, match="read-only") as refusal:
                write()
            one_line(refusal, name_of(url))
        assert sessions.count(session_id) == 1


def test_c128_a_role_without_rights_reads_and_is_told_when_it_writes(postgres):
    url = postgres.new_database()
    with open_sessions(url) as sessions:
        session_id = sessions.create().session_id
    postgres.execute("CREATE ROLE reader LOGIN IN ROLE pg_read_all_data")
    with open_sessions(postgres.url(name_of(url), "reader", "")) as sessions:
        assert [each.session_id for each in sessions.list()] == [session_id]
        with pytest.raises(errors.SessionStorageError, match="read-only") as refusal:
            sessions.append(session_id, "user", "x")
        one_line(refusal, name_of(url))
