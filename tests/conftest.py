import signal

import hypothesis
import pytest

from support.postgres import PostgresServer
from support.scripted_llm import ScriptedLLM

# `make test-fast` asks for it.
hypothesis.settings.register_profile("fast", max_examples=20)


def pytest_configure():
    # A script's background job ignores Ctrl-C, and nohup the end of a terminal: what is tested must not inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


# Rooms whose tests are all runs of the command line; what a module imports, or a test asks for, to start a program.
RUNS = {"cli", "docs", "examples"}
STARTS_PROGRAMS = {"command", "multiprocessing", "postgres", "run_killer", "start", "subprocess"}


def pytest_collection_modifyitems(items):
    """What starts other programs is slow: `make test-fast` leaves it out."""
    for item in items:
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        on_a_server = any(isinstance(value, str) and value == "postgresql" for value in parameters)
        starts = STARTS_PROGRAMS.intersection([*vars(item.module), *item.fixturenames])
        if item.path.parent.name in RUNS or on_a_server or starts:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def postgres():
    """A PostgreSQL server, on which tests make databases of their own."""
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def postgres_url(postgres):
    """The URL of a database of the current schema, which tests share one after the other."""
    from cleveragents.sessions.open import open_database

    url = postgres.new_database()
    database = open_database(url)
    database.upgrade()
    database.close()
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    """The URL of a database without sessions, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'data' / 'sessions.db'}"
    url = request.getfixturevalue("postgres_url")
    # Every other table refers to this one.
    request.getfixturevalue("postgres").execute("DELETE FROM sessions", url)
    return url


@pytest.fixture
def sessions(database_url):
    """The sessions of a database without any, of each kind in turn."""
    from cleveragents import open_sessions

    with open_sessions(database_url) as service:
        yield service


@pytest.fixture
def scripted_llm():
    """An OpenAI-compatible server that says what the test's script says."""
    server = ScriptedLLM()
    yield server
    server.stop()
