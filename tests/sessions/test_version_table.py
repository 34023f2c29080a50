"""The schema is recorded in a table of our own: other programs' records are neither taken for it nor touched."""

import pytest
from sqlalchemy import create_engine, inspect, text

from cleveragents import errors, open_sessions
from cleveragents.sessions.open import open_database
from cleveragents.sessions.sql.migrate import CURRENT
from support.frozen import CHECKSUMS, SOUGHT_BY_SCHEMA_2, run_script

OTHERS = "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"


def rows_of(url, table):
    engine = create_engine(url)
    with engine.connect() as connection:
        found = connection.execute(text(f"SELECT * FROM {table}")).scalars().all()  # noqa: S608 - our own
    engine.dispose()
    return found


def columns_of(url):
    """The columns of every table, by the table's name."""
    engine = create_engine(url)
    with engine.connect() as connection:
        look = inspect(connection)
        found = {table: {column["name"] for column in look.get_columns(table)} for table in look.get_table_names()}
    engine.dispose()
    return found


def schema_of(url):
    database = open_database(url)
    try:
        return database.status().schema
    finally:
        database.close()


@pytest.mark.parametrize("revision", ["ae1027a6acf9", "0001", "0002", "0003", "9999"])
def test_c127_the_revision_of_another_program_is_not_taken_for_ours(empty_url, revision):
    run_script(empty_url, f"{OTHERS}; INSERT INTO alembic_version VALUES ('{revision}')")  # noqa: S608 - our own
    assert schema_of(empty_url) is None
    with open_sessions(empty_url) as sessions:
        session_id = sessions.create().session_id
        assert [each.session_id for each in sessions.list()] == [session_id]
    assert schema_of(empty_url) == CURRENT.head
    assert rows_of(empty_url, "alembic_version") == [revision]


def test_c127_an_empty_record_of_another_program_stays_as_it_is(empty_url):
    run_script(empty_url, OTHERS)
    with open_sessions(empty_url) as sessions:
        sessions.create()
    assert rows_of(empty_url, "alembic_version") == []


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM alembic_version",
        "UPDATE alembic_version SET version_num = 'ae1027a6acf9'",
        "UPDATE alembic_version SET version_num = '0003'",
        "INSERT INTO alembic_version VALUES ('ae1027a6acf9')",
    ],
)
def test_c127_our_old_tables_beside_a_record_that_is_not_ours_are_left_alone(frozen_url, change):
    run_script(frozen_url, change)
    before, record = columns_of(frozen_url), rows_of(frozen_url, "alembic_version")
    with open_sessions(frozen_url) as sessions:
        for call in (sessions.list, sessions.create):
            with pytest.raises(errors.SessionSchemaError, match="another program") as refusal:
                call()
            assert "\n" not in str(refusal.value)
    assert columns_of(frozen_url) == before
    assert rows_of(frozen_url, "alembic_version") == record


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM cleveragents_version",
        "UPDATE cleveragents_version SET version_num = 'ae1027a6acf9'",
        "UPDATE cleveragents_version SET version_num = ''",
        "INSERT INTO cleveragents_version VALUES ('0001')",
    ],
)
def test_odd_values_in_our_own_record_are_damage(empty_url, change):
    with open_sessions(empty_url) as sessions:
        sessions.create()
    run_script(empty_url, change)
    with open_sessions(empty_url) as sessions:
        for call in (sessions.list, sessions.create):
            with pytest.raises(errors.SessionDamagedError, match="cleveragents_version") as refusal:
                call()
            assert "\n" not in str(refusal.value)


def test_the_release_before_finds_no_tables_that_it_would_take_for_the_first_schema(frozen_url):
    assert all(columns <= columns_of(frozen_url)[table] for table, columns in SOUGHT_BY_SCHEMA_2.items())
    with open_sessions(frozen_url) as sessions:
        assert len(sessions.list()) == len(CHECKSUMS)
    now = columns_of(frozen_url)
    assert "alembic_version" not in now
    missing = {table: columns - now[table] for table, columns in SOUGHT_BY_SCHEMA_2.items() if columns - now[table]}
    assert missing == {"linked_plans": {"position"}}
