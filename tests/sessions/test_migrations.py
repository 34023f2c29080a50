"""Databases of every schema become databases of the current one, or are left as they are."""

import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, inspect, text

from cleveragents import SessionService, errors, open_sessions
from cleveragents.sessions.open import open_database
from cleveragents.sessions.sql.migrate import CURRENT, Schema
from cleveragents.sessions.sql.store import SqlSessionStore
from cleveragents.sessions.sql.tables import metadata as declared
from cleveragents.values.text import first_words
from support.frozen import CHECKSUMS, checksum_of_1_0, freeze_first, run_script

ROOT = Path(__file__).parents[2]

# The schema that a later release might have. What it does half-way is for each test to say.
NEXT = '''"""A column that old rows do not have."""

import os
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("sessions", sa.Column("pinned", sa.Integer(), nullable=False, server_default="0"))
    {halfway}
    op.create_index("ix_sessions_pinned", "sessions", ["pinned"])
'''


def context_on(connection):
    return MigrationContext.configure(connection, opts={"version_table": "cleveragents_version"})


def engine_for(url):
    return create_engine(url)


def next_schema(folder, halfway="pass"):
    """The schema of a later release."""
    scripts = shutil.copytree(CURRENT.scripts, folder / "next")
    (scripts / "versions" / "9999_pinned.py").write_text(NEXT.replace("{halfway}", halfway), encoding="utf-8")
    return Schema(scripts, "9999")


def sessions_of(url, schema=CURRENT):
    return SessionService(SqlSessionStore(open_database(url, schema)))


def schema_of(url):
    database = open_database(url)
    found = database.status().schema
    database.close()
    return found


def tables_of(url):
    """Everything the database's catalogue says about our tables."""
    engine = engine_for(url)
    with engine.connect() as connection:
        inspector = inspect(connection)
        found = {
            table: {
                "columns": {
                    column["name"]: (str(column["type"]), column["nullable"], bool(column.get("identity")))
                    for column in inspector.get_columns(table)
                },
                "primary": sorted(inspector.get_pk_constraint(table)["constrained_columns"]),
                "foreign": [
                    (key["name"], key["constrained_columns"], key["referred_table"], key["options"])
                    for key in inspector.get_foreign_keys(table)
                ],
                "unique": {key["name"]: key["column_names"] for key in inspector.get_unique_constraints(table)},
                "checks": {check["name"]: check["sqltext"] for check in inspector.get_check_constraints(table)},
                "indexes": {index["name"]: index["column_names"] for index in inspector.get_indexes(table)},
                "options": inspector.get_table_options(table),
            }
            for table in declared.tables
        }
    engine.dispose()
    return found


class TestSchema:
    def test_what_is_migrated_is_what_is_declared(self, empty_url, postgres, tmp_path):
        sqlite = empty_url.startswith("sqlite")
        other = f"sqlite:///{tmp_path}/declared.db" if sqlite else postgres.new_database()
        engine = engine_for(other)
        declared.create_all(engine)
        engine.dispose()
        database = open_database(empty_url)
        database.upgrade()
        database.close()
        assert tables_of(empty_url) == tables_of(other)
        engine = engine_for(empty_url)
        with engine.connect() as connection:
            assert compare_metadata(context_on(connection), declared) == []
            if sqlite:
                strict = connection.execute(text("SELECT name FROM pragma_table_list WHERE strict")).scalars()
                assert set(strict) == set(declared.tables)
        engine.dispose()

    def test_the_current_revision_is_the_newest_script(self):
        assert ScriptDirectory(str(CURRENT.scripts)).get_heads() == [CURRENT.head]

    def test_an_upgraded_database_of_the_first_release_is_what_is_declared(self, frozen_url):
        database = open_database(frozen_url)
        database.upgrade()
        database.close()
        engine = engine_for(frozen_url)
        with engine.connect() as connection:
            assert compare_metadata(context_on(connection), declared) == []
            assert "alembic_version" not in inspect(connection).get_table_names()
        engine.dispose()


class TestUpgrading:
    def test_c68_every_session_of_the_first_release_can_be_used(self, frozen_url, tmp_path):
        with sessions_of(frozen_url) as sessions:
            listed = sessions.list()
            assert {summary.session_id for summary in listed} == set(CHECKSUMS)
            for summary in listed:
                document = sessions.export(summary.session_id)
                assert checksum_of_1_0(document) == CHECKSUMS[summary.session_id]
                number = sessions.append(summary.session_id, "user", "and on").sequence
                assert number == summary.message_count
                assert len(sessions.messages(summary.session_id)) == number + 1
        assert schema_of(frozen_url) == CURRENT.head

    def test_c67_c68_an_old_database_is_upgraded_by_the_first_call(self, frozen_url, tmp_path):
        with sessions_of(frozen_url, next_schema(tmp_path)) as sessions:
            assert {summary.session_id for summary in sessions.list()} == set(CHECKSUMS)
            for session_id, checksum in CHECKSUMS.items():
                assert checksum_of_1_0(sessions.export(session_id)) == checksum
            sessions.append(sessions.create().session_id, "user", "new here")
        assert "pinned" in tables_of(frozen_url)["sessions"]["columns"]

    def test_an_upgrade_does_not_wait_for_those_who_only_have_the_database_open(self, empty_url, tmp_path):
        with sessions_of(empty_url) as old:
            session_id = old.create().session_id
            hurried = f"{empty_url}{'&' if '?' in empty_url else '?'}busy_timeout=1"
            with sessions_of(hurried, next_schema(tmp_path)) as new:
                assert new.append(session_id, "user", "x").sequence == 0
            assert old.append(session_id, "user", "y").sequence == 1

    def test_an_upgrade_is_copied_first(self, tmp_path):
        url = f"sqlite:///{tmp_path}/store/sessions.db"
        freeze_first(url)
        os.umask(0o022)
        with sessions_of(url, next_schema(tmp_path)) as sessions:
            sessions.list()
        copy = tmp_path / "store" / "sessions.db.before-9999"
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert "pinned" not in tables_of(f"sqlite:///{copy}")["sessions"]["columns"]
        with sessions_of(f"sqlite:///{copy}") as old:
            assert {summary.session_id for summary in old.list()} == set(CHECKSUMS)

    def test_c67_a_fresh_database_needs_no_upgrade(self, empty_url):
        with sessions_of(empty_url) as sessions:
            session_id = sessions.create().session_id
        database = open_database(empty_url)
        database.upgrade()
        database.upgrade()
        database.close()
        assert schema_of(empty_url) == CURRENT.head
        with sessions_of(empty_url) as sessions:
            assert sessions.get(session_id).messages == []

    def test_c67_tables_without_a_record_of_their_revision_get_one(self, frozen_url, tmp_path):
        run_script(frozen_url, "DROP TABLE alembic_version")
        with sessions_of(frozen_url, next_schema(tmp_path)) as sessions:
            assert {summary.session_id for summary in sessions.list()} == set(CHECKSUMS)
        assert schema_of(frozen_url) == "9999"

    def test_tables_of_another_program_are_left_alone(self, empty_url):
        run_script(empty_url, "CREATE TABLE sessions (id TEXT, name TEXT); INSERT INTO sessions VALUES ('1', 'mine')")
        with sessions_of(empty_url) as sessions:
            for call in (sessions.list, sessions.create):
                with pytest.raises(errors.SessionSchemaError, match="not ours"):
                    call()
        engine = engine_for(empty_url)
        with engine.connect() as connection:
            assert inspect(connection).get_table_names() == ["sessions"]
            assert connection.execute(text("SELECT name FROM sessions")).scalar() == "mine"
        engine.dispose()

    def test_tables_of_another_name_do_no_harm(self, empty_url):
        run_script(empty_url, "CREATE TABLE invoices (id TEXT)")
        with sessions_of(empty_url) as sessions:
            sessions.create()
            assert len(sessions.list()) == 1

    @pytest.mark.parametrize("revision", ["0005", "9998"])
    def test_a_newer_database_is_refused_in_one_sentence_and_left_as_it_is(self, frozen_url, revision):
        with sessions_of(frozen_url) as sessions:
            sessions.list()
        run_script(frozen_url, f"UPDATE cleveragents_version SET version_num = '{revision}'")  # noqa: S608 - our own
        with sessions_of(frozen_url) as sessions:
            for call in (sessions.list, sessions.create):
                with pytest.raises(errors.SessionSchemaError, match=f"schema {revision}.*newer version") as refusal:
                    call()
                assert "\n" not in str(refusal.value)
        assert schema_of(frozen_url) == revision

    def test_a_revision_of_another_program_is_refused(self, frozen_url):
        run_script(frozen_url, "UPDATE alembic_version SET version_num = 'a1b2c3'")
        with sessions_of(frozen_url) as sessions, pytest.raises(errors.SessionSchemaError, match="another program"):
            sessions.list()

    def test_old_sessions_get_their_first_words(self, frozen_url):
        with sessions_of(frozen_url) as sessions:
            for summary in sessions.list():
                messages = sessions.messages(summary.session_id)
                asked = [each.content for each in messages if each.role == "user" and each.content]
                assert summary.first_words == (first_words(asked[0]) if asked else None)


class TestInterruption:
    def test_a_migration_that_fails_leaves_everything_as_it_was(self, frozen_url, tmp_path):
        before = tables_of(frozen_url)
        failing = next_schema(tmp_path, "raise ArithmeticError('half-way')")
        with sessions_of(frozen_url, failing) as sessions, pytest.raises(ArithmeticError):
            sessions.list()
        assert tables_of(frozen_url) == before
        assert schema_of(frozen_url) == "0001"
        with sessions_of(frozen_url) as sessions:
            assert len(sessions.list()) == len(CHECKSUMS)

    def test_a_migration_that_was_killed_is_done_again(self, frozen_url, tmp_path):
        killing = next_schema(tmp_path, "os.kill(os.getpid(), 9)")
        program = (
            "import sys; from pathlib import Path\n"
            "from cleveragents.sessions.open import open_database\n"
            "from cleveragents.sessions.sql.migrate import Schema\n"
            "open_database(sys.argv[1], Schema(Path(sys.argv[2]), '9999')).upgrade()\n"
        )
        killed = subprocess.run([sys.executable, "-c", program, frozen_url, str(killing.scripts)], check=False)
        assert killed.returncode == -9
        assert schema_of(frozen_url) == "0001"
        shutil.rmtree(killing.scripts)
        with sessions_of(frozen_url, next_schema(tmp_path)) as sessions:
            assert {summary.session_id for summary in sessions.list()} == set(CHECKSUMS)
        assert schema_of(frozen_url) == "9999"

    def test_a_creation_that_was_killed_is_done_again(self, tmp_path):
        url = f"sqlite:///{tmp_path}/sessions.db"
        program = (
            "import os, sys\n"
            "from alembic.operations import Operations\n"
            "real = Operations.create_index\n"
            "def create_index(self, name, *rest, **more):\n"
            "    if name == 'ix_usage_entries_session': os.kill(os.getpid(), 9)\n"
            "    return real(self, name, *rest, **more)\n"
            "from alembic import op\n"
            "op.create_index = lambda *a, **k: create_index(op._proxy, *a, **k)\n"
            "from cleveragents import open_sessions\n"
            "open_sessions(sys.argv[1]).create()\n"
        )
        killed = subprocess.run([sys.executable, "-c", program, url], check=False)
        assert killed.returncode == -9
        with open_sessions(url) as sessions:
            assert sessions.list() == []
            sessions.create()
            assert len(sessions.list()) == 1


def test_c70_an_installed_wheel_creates_and_migrates_in_an_empty_home(tmp_path):
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    installed = sorted(site.rglob("*"))
    for path in installed:
        path.chmod(0o500 if path.is_dir() else 0o400)
    environment = os.environ | {
        "PYTHONPATH": str(site),
        "PYTHONDONTWRITEBYTECODE": "1",
        "CLEVERAGENTS_HOME": str(tmp_path / "home"),
    }
    program = (
        "import cleveragents; print(cleveragents.__file__)\n"
        "with cleveragents.open_sessions() as sessions:\n"
        "    sessions.append(sessions.create().session_id, 'user', 'hello')\n"
        "    print(len(sessions.list()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd="/", env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [str(site / "cleveragents" / "__init__.py"), "1"]
    assert done.stderr == ""
    assert sorted(site.rglob("*")) == installed
    with open_sessions(f"sqlite:///{tmp_path}/home/cleveragents.db") as sessions:
        assert len(sessions.list()) == 1
    for path in installed:
        path.chmod(0o700)


def test_c71_a_migration_leaves_the_logging_of_the_program_alone(tmp_path):
    program = """
import logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="mine %(name)s %(message)s")
ours, root = logging.getLogger("program"), logging.getLogger()
before = (root.level, list(root.handlers), ours.level, ours.disabled)
from cleveragents import open_sessions
with open_sessions(sys.argv[1]) as sessions:
    sessions.create()
assert before == (root.level, list(root.handlers), ours.level, ours.disabled)
ours.info("after the migration")
"""
    url = f"sqlite:///{tmp_path}/s.db"
    done = subprocess.run([sys.executable, "-c", program, url], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == "mine program after the migration"
    assert all(line.startswith("mine ") for line in done.stderr.splitlines())
