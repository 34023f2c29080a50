from datetime import UTC, datetime
from functools import partial

import pytest

from cleveragents import ContextManager, MessageDraft, open_sessions
from support.command import command
from support.session_documents import PLAN


@pytest.fixture
def home(tmp_path):
    """Where contexts and sessions are kept; not there yet."""
    return tmp_path / "home"


@pytest.fixture
def root(home):
    return home / "contexts"


@pytest.fixture
def run(home, tmp_path):
    """Run ``cleveragents`` in a folder of its own."""
    return partial(command, home=home, cwd=tmp_path)


@pytest.fixture
def run_context(run):
    return partial(run, "context")


@pytest.fixture
def run_session(run):
    return partial(run, "session")


@pytest.fixture
def notes(root):
    """A context with two messages."""
    context = ContextManager("notes", root)
    context.add_message("user", "Hello Wörld", {"k": 1}, datetime(2026, 1, 1, tzinfo=UTC))
    context.add_message("assistant", "Hi \x1b[31m there", None, datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC))
    context.update_global_context({"stage": "drafting"})
    return context


@pytest.fixture
def store(home):
    """The sessions of the home."""
    with open_sessions(f"sqlite:///{home / 'cleveragents.db'}") as service:
        yield service


@pytest.fixture
def talk(store):
    """The id of a session with everything in it."""
    session_id = store.create("team/bot", title="Sea\x1b[31m", tags=["a", "b"], metadata={"k": 1}).session_id
    store.append_all(
        session_id,
        [
            MessageDraft("user", "Where to?\x07"),
            MessageDraft("assistant", None, tool_calls=[{"id": "c1", "name": "weather"}], agent="planner"),
            MessageDraft("tool", "sunny", tool_call_id="c1"),
            MessageDraft("assistant", ["To the sea.", {"type": "image_url"}], agent="planner"),  # type: ignore[arg-type]
            MessageDraft("assistant", "Or", metadata={"interrupted": True}),
        ],
    )
    store.add_usage(session_id, 10, 5, 0.25, llm="x:1")
    store.add_usage(session_id, 1, 2, None, llm="x:2")
    store.link_plan(session_id, PLAN, phase="draft")
    return session_id
