"""``cleveragents session create``, ``rename``, ``tag``, ``link-plan`` and ``delete``."""

import os
import pty
import subprocess

import pytest

from cleveragents.values.ids import new_ulid
from support.command import COMMAND, environment, ok, one_line
from support.session_documents import PLAN


def test_create_prints_the_id_of_a_session_with_what_was_given(run_session, store):
    session_id = ok(
        run_session(
            "create",
            "--actor",
            "a/b",
            "--namespace",
            "n",
            "--title",
            "É 🎉",
            "--level",
            "manual",
            "--tag",
            "y",
            "--tag",
            "x",
        )
    ).strip()
    summary = store.summary(session_id)
    assert (summary.actor_name, summary.namespace, summary.title) == ("a/b", "n", "É 🎉")
    assert (summary.automation_level, summary.tags) == ("manual", ["x", "y"])
    assert ok(run_session("create")).strip() == store.list(limit=1)[0].session_id


@pytest.mark.parametrize(
    "arguments",
    [["--actor", "x"], ["--namespace", ""], ["--title", " "], ["--level", "high"], ["--tag", ""]],
    ids=" ".join,
)
def test_create_refuses_what_no_session_can_have(run_session, home, arguments):
    one_line(run_session("create", *arguments), 2)
    assert not home.exists()


def test_rename_gives_a_title(run_session, talk, store):
    assert "'New'" in run_session("rename", talk, "New").stderr
    assert store.summary(talk).title == "New"
    one_line(run_session("rename", talk, ""), 2)
    assert store.summary(talk).title == "New"


def test_tag_adds_removes_and_prints(run_session, talk, store):
    assert ok(run_session("tag", talk, "--add", "c", "--add", "d", "--remove", "a", "--remove", "z")) == "b\nc\nd\n"
    assert store.summary(talk).tags == ["b", "c", "d"]
    before = store.summary(talk)
    assert ok(run_session("tag", talk)) == "b\nc\nd\n"
    assert store.summary(talk) == before
    one_line(run_session("tag", talk, "--add", " "), 2)


def test_link_plan_links_once(run_session, talk, store):
    ok(run_session("link-plan", talk, PLAN.lower(), "--state", "done"))
    (plan,) = store.summary(talk).linked_plans
    assert (plan.plan_id, plan.phase, plan.state) == (PLAN, "draft", "done")
    one_line(run_session("link-plan", talk, "x"), 2)
    one_line(run_session("link-plan", talk, PLAN, "--phase", " "), 2)


def test_delete_removes_several_or_none(run_session, store):
    made = [store.create().session_id for _ in range(3)]
    assert "no session" in one_line(run_session("delete", made[0], new_ulid(), "--yes"), 3)
    assert len(store.list()) == 3
    done = run_session("delete", made[0], made[1].lower(), made[0], "--yes")
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 2
    assert [summary.session_id for summary in store.list()] == [made[2]]


def test_delete_needs_yes_without_a_terminal(run_session, talk, store):
    line = one_line(run_session("delete", talk), 2)
    assert "--yes" in line
    assert "5 messages" in line
    assert "\\x1b" in line
    assert store.count(talk) == 5


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 7)])
def test_delete_asks_on_a_terminal(talk, store, home, answer, code):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "session", "delete", talk],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home),
    )
    assert process.stderr is not None
    asked = b""
    while not asked.endswith(b"[y/N]: "):
        piece = os.read(process.stderr.fileno(), 4096)
        assert piece, asked
        asked += piece
    assert asked.startswith(f"Delete session {talk} (Sea\\x1b[31m, 5 messages)?".encode())
    os.write(ours, answer.encode())
    out, err = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert (process.returncode, out) == (code, b""), err
    assert len(store.list()) == (1 if code else 0)
