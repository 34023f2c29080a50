"""``cleveragents session tell``: going on with a session by its id alone."""

import json

import pytest

from support.command import command, one_line
from support.sessions import signed


@pytest.fixture
def begun(run, tmp_path):
    """The id of a session with one turn of an agent that shouts."""
    (tmp_path / "loud.yaml").write_text(
        "agents: {loud: {type: tool, code: result = message.upper()}}", encoding="utf-8"
    )
    done = run("run", "loud.yaml", "hello", "--new-session")
    assert done.returncode == 0, done.stderr
    return done.stderr.removeprefix("session: ").strip()


def test_tell_uses_the_file_that_the_session_was_last_run_with(run, begun, store, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    done = command("session", "tell", "last", "é?", home=tmp_path / "home", cwd=tmp_path / "elsewhere")
    assert (done.returncode, done.stdout, done.stderr) == (0, "É?\n", "")
    assert [message.content for message in store.messages(begun)] == ["hello", "HELLO", "é?", "É?"]
    done = run("session", "tell", begun[:24].lower(), "-", "--output-format", "json", stdin="piped")
    document = json.loads(done.stdout)
    assert (document["output"], document["session"]) == ("PIPED", begun)


def test_another_file_is_the_one_to_go_on_with(run, begun, tmp_path):
    (tmp_path / "soft.yaml").write_text(
        "agents: {soft: {type: tool, code: result = message.lower()}}", encoding="utf-8"
    )
    assert run("session", "tell", begun, "ABC", "--config", "soft.yaml").stdout == "abc\n"
    assert run("session", "tell", begun, "ABC").stdout == "abc\n"


def test_without_a_file_to_go_on_with_tell_says_what_to_give(run, begun, store, tmp_path):
    fresh = store.create().session_id
    assert "--config" in one_line(run("session", "tell", fresh, "x"), 2)
    (tmp_path / "loud.yaml").unlink()
    line = one_line(run("session", "tell", begun, "x"), 3)
    assert str(tmp_path / "loud.yaml") in line
    assert "--config" in line
    assert store.count(begun) == 2
    assert "no prompt" in one_line(run("session", "tell", fresh, "--config", "loud.yaml"), 2)


def test_a_file_that_cannot_be_used_is_told_of_and_nothing_is_stored(run, begun, store, tmp_path):
    (tmp_path / "loud.yaml").write_text("agents: {}", encoding="utf-8")
    assert "loud.yaml" in one_line(run("session", "tell", begun, "x"), 2)
    assert store.count(begun) == 2


def test_tell_on_a_session_that_another_run_holds_is_refused(run, begun, store):
    with store.turn(begun):
        assert begun in one_line(run("session", "tell", begun, "x", "--wait", "0"), 6)
    assert store.count(begun) == 2


def test_an_imported_session_chooses_no_file_to_run(run, begun, store, tmp_path):
    (tmp_path / "strange.yaml").write_text("agents: {strange: {type: tool, code: result = 'mine!'}}", encoding="utf-8")
    for config in (str(tmp_path / "strange.yaml"), "strange.yaml"):
        document = store.export(begun)
        document["metadata"] = {"cleveragents": {"config": config}}
        imported = store.import_(signed(document)).session_id
        store.append(imported, "user", "more")
        assert "--config" in one_line(run("session", "tell", imported, "x"), 2)
        # Neither is it the one that somebody means who names none.
        assert run("session", "tell", "last", "x").stdout == "X\n"
        assert run("run", "loud.yaml", "y", "--continue").stdout == "Y\n"
        assert [message.content for message in store.last_messages(imported, 1)] == ["more"]
    # Once it has been run here, it is a session like the others.
    assert run("session", "tell", imported, "x", "--config", "loud.yaml").stdout == "X\n"
    assert run("session", "tell", "last", "z").stdout == "Z\n"
    assert store.last_messages(imported, 1)[0].content == "Z"


def test_a_path_that_no_run_has_stored_is_not_run(run, begun, store):
    store.update(begun, metadata={"cleveragents": {"config": "loud.yaml"}})
    assert "--config" in one_line(run("session", "tell", begun, "x"), 2)
