"""The statements: whole, found by index, cheap to load, and independent of what else is stored."""

import dataclasses
import re
import subprocess
import sys
import tracemalloc

import pytest

from cleveragents import errors, open_sessions
from cleveragents.sessions.filter import SessionFilter
from cleveragents.sessions.open import open_database
from cleveragents.sessions.sql.query_loader import load_queries
from cleveragents.values.ids import new_ulid

SMALL, LONG = 12_000, 10_000


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def full(request, tmp_path_factory):
    """A database with many small sessions and one long one, and the id of that."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path_factory.mktemp('full')}/sessions.db"
    else:
        url = request.getfixturevalue("postgres").new_database()
    with open_sessions(url) as sessions:
        session_id = sessions.create("team/long").session_id
    database = open_database(url)
    sql = database.statements
    empty = dict.fromkeys(re.findall(r"[:(](\w+)", sql["add_session"].partition("VALUES")[2]))
    session = {
        **empty,
        "namespace": "local",
        "metadata": "{}",
        **dict.fromkeys(("message_count", "input_tokens", "output_tokens", "cost_nano", "created_at", "updated_at"), 0),
        "cost_complete": 1,
    }
    message = {
        "session_id": session_id,
        "role": "user",
        "content": "x" * 300,
        "created_at": 0,
        **dict.fromkeys(("tool_call_id", "tool_calls", "parts", "agent", "metadata")),
    }
    ids = [new_ulid() for _ in range(SMALL)]
    with database.writing() as db:
        db.many(
            sql["add_session"],
            [
                session
                | {"id": id_, "activity": place, "actor_name": f"team/bot{place % 500}", "namespace": f"n{place % 500}"}
                for place, id_ in enumerate(ids)
            ],
        )
        db.many(sql["add_tag"], [{"session_id": id_, "tag": f"tag{place % 500}"} for place, id_ in enumerate(ids)])
        db.many(
            sql["add_plan"], [{"session_id": i, "plan_id": i, "ordinal": 0, "phase": None, "state": None} for i in ids]
        )
        tokens = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
        db.many(
            sql["add_usage"],
            [{"session_id": i, "llm": None, **dict.fromkeys(tokens, 1), "cost_nano": 1, "created_at": 0} for i in ids],
        )
        db.many(sql["add_message"], [message | {"sequence": number} for number in range(LONG)])
    database.query("ANALYZE", {})
    yield database, session_id, url
    database.close()


def plan_of(database, sql, parameters):
    prefix = "EXPLAIN QUERY PLAN" if database.status().kind == "SQLite" else "EXPLAIN"
    with database.writing() as db:
        return "\n".join(str(list(row.values())[-1]) for row in db.rows(f"{prefix} {sql}", parameters))


FILTERS = [name.removeprefix("filter ") for name in load_queries("sqlite") if name.startswith("filter ")]
CHOICES = [(), *((name,) for name in FILTERS), ("actor_name", "since", "until")]


def whole_statements(sql):
    """Every statement by its name; lists with every condition."""
    conditions = "\n".join(sql[f"filter {name}"] for name in FILTERS)
    return {name: text.replace("{filters}", conditions) for name, text in sql.items() if " " not in name}


BY_ID = [
    "take_numbers",
    "begin_turn",
    "count",
    "summary",
    "summary_for_change",
    "plans",
    "tags",
    "usage",
    "delete",
    "place",
]


def test_every_condition_of_a_list_is_a_field_of_its_filter():
    assert set(FILTERS) == {field.name for field in dataclasses.fields(SessionFilter)}


def test_every_statement_names_what_is_there(full):
    database, _, url = full
    for name, text in whole_statements(database.statements).items():
        if url.startswith("sqlite"):
            database.query(f"EXPLAIN {text}", dict.fromkeys(re.findall(r":(\w+)", text)))
        else:
            given = dict.fromkeys(re.findall(r"%\((\w+)\)s", text))
            numbered = text % {parameter: f"${number}" for number, parameter in enumerate(given, 1)}
            database.query(f"PREPARE {name} AS {numbered}", {})


def test_a_statement_that_names_what_is_not_there_is_found(full):
    database, _, url = full
    wrong = "SELECT missing FROM sessions"
    with pytest.raises(errors.SessionStorageError, match="missing"):
        database.query(f"EXPLAIN {wrong}" if url.startswith("sqlite") else f"PREPARE wrong AS {wrong}", {})


def test_no_statement_reads_a_whole_table(full):
    database, session_id, _ = full
    parameters = {
        "session_id": session_id,
        "count": 1,
        "now": 1,
        "turn_number": 0,
        "first_words": "x",
        "start": 100,
        "stop": 110,
        "limit": 20,
        "activity": 2**62,
        "after": "",
        "actor_name": "team/bot7",
        "namespace": "n7",
        "tag": "tag7",
        "imported_checksum": "sha256:x",
        "id_prefix": session_id[:20],
        "id_prefix_end": f"{session_id[:20]}~",
        "since": 11_000,
        "until": 100,
    }
    sql = database.statements
    texts = [sql[name] for name in (*BY_ID, "messages", "last_messages", "newest_activity")]
    texts += [
        sql[name].replace("{filters}", "\n".join(sql[f"filter {each}"] for each in chosen))
        for name in ("page", "page_plans", "page_tags")
        for chosen in CHOICES
    ]
    for text in texts:
        used = {name: value for name, value in parameters.items() if re.search(rf"[:(]{name}\b", text)}
        plan = plan_of(database, text, used)
        assert not re.search(r"SCAN (?!page\b)|Seq Scan", plan), f"{text}\n{plan}"


def test_c79_a_long_session_costs_the_others_nothing(full):
    _, session_id, url = full
    with open_sessions(url) as sessions:
        sessions.list(limit=1)
        tracemalloc.start()
        try:
            assert len(sessions.list(limit=20)) == 20
            assert len(sessions.last_messages(session_id, 10)) == 10
            sessions.append(sessions.list(limit=2)[1].session_id, "user", "x")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 1_000_000, "the long session alone is 3 MB of text"


def test_c80_storage_grows_with_what_is_said_not_with_what_was_said_before(tmp_path):
    path = tmp_path / "s.db"
    sizes = []
    with open_sessions(f"sqlite:///{path}") as sessions:
        session_id = sessions.create().session_id
        for number in range(1, 601):
            sessions.append(session_id, "user", f"{number:1024}")
            if number in {300, 600}:
                database = open_database(f"sqlite:///{path}")
                sizes.append(database.query("PRAGMA page_count", {})[0]["page_count"])
                database.close()
    assert sizes[1] < 2.1 * sizes[0]
    assert sizes[1] * 4096 < 600 * 1024 * 1.6


@pytest.mark.parametrize(
    ("action", "forbidden"),
    [
        ("sessions.list()", ("sqlalchemy", "alembic", "psycopg", "filelock", "pydantic", "asyncio", "rfc8785")),
        ("sessions.append(sys.argv[2], 'user', 'x')", ("sqlalchemy", "alembic", "psycopg", "filelock", "pydantic")),
        ("sessions.last_messages(sys.argv[2], 3)", ("sqlalchemy", "alembic", "psycopg", "filelock", "pydantic")),
    ],
)
def test_everyday_calls_load_no_heavy_library(tmp_path, action, forbidden):
    url = f"sqlite:///{tmp_path}/s.db"
    with open_sessions(url) as sessions:
        session_id = sessions.create().session_id
    program = (
        "import sys; from cleveragents import open_sessions\n"
        f"with open_sessions(sys.argv[1]) as sessions: {action}\n"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program, url, session_id], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint(forbidden)


def test_opening_makes_nothing_and_needs_no_driver(tmp_path):
    program = (
        "import sys; from cleveragents import open_sessions\nopen_sessions(sys.argv[1]).close()\nprint(*sys.modules)"
    )
    url = f"sqlite:///{tmp_path}/none/s.db"
    done = subprocess.run([sys.executable, "-c", program, url], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()).isdisjoint({"sqlite3", "pysqlite3", "sqlalchemy"})
    assert list(tmp_path.iterdir()) == []
