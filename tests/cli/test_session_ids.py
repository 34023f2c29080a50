"""The ids that session commands take: in either case, their beginnings, ``last``, and what is none."""

import pytest

from cleveragents.values.ids import new_ulid
from support.command import ok, one_line
from support.session_documents import PLAN, listed

WITH_ID = {
    "show": [],
    "tail": [],
    "rename": ["x"],
    "tag": ["--add", "x"],
    "link-plan": [PLAN],
    "delete": ["--yes"],
    "export": [],
    "verify": [],
    "tell": ["x"],
}


def test_c89_ids_are_the_same_in_either_case(run_session, talk, store):
    assert listed(run_session("list", "--after", talk.lower(), "--format", "json")) == []
    assert f"session id: {talk}" in ok(run_session("show", talk.lower()))
    assert f"session id: {talk}" in ok(run_session("show", talk[:20].lower()))
    ok(run_session("rename", talk.lower(), "x"))
    ok(run_session("delete", talk.lower(), "--yes"))
    assert store.list() == []


@pytest.mark.parametrize("name", WITH_ID)
def test_an_unknown_an_ambiguous_and_a_malformed_id_are_told_apart(run_session, store, name, tmp_path):
    one, two = store.create().session_id, store.create().session_id
    before = store.list()
    unknown = new_ulid()
    assert unknown in one_line(run_session(name, unknown, *WITH_ID[name]), 3)
    assert "7ZZ" in one_line(run_session(name, "7zz", *WITH_ID[name]), 3)
    line = one_line(run_session(name, one[:5], *WITH_ID[name]), 4)
    assert one in line
    assert two in line
    for malformed in ("notavalidulidnotavalidulid", one[:-1] + "u", f" {one}", f"{one}0", "\uff10\uff11", ""):
        assert "not a valid id" in one_line(run_session(name, malformed, *WITH_ID[name]), 2)
    assert store.list() == before
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_c88_a_malformed_id_of_a_plan_is_refused(run_session, talk, store):
    before = store.summary(talk)
    for malformed in ("notavalidulidnotavalidulid", PLAN[:-1], f"{PLAN} ", "last"):
        assert "not a valid id" in one_line(run_session("link-plan", talk, malformed), 2)
    assert store.summary(talk) == before
