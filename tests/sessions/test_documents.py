"""Export documents: what they hold, who can verify them, and what is refused on the way back."""

import copy
import datetime as dt
import json
import shutil

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from cleveragents import errors, open_sessions
from cleveragents.sessions import document as transfer
from cleveragents.sessions import received
from cleveragents.values.canonical import canonical_json, checksum
from support.everything import PLANS, fill
from support.sessions import signed


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A database with one session, and the document of another with a bit of everything."""
    path = tmp_path_factory.mktemp("documents") / "made.db"
    with open_sessions(f"sqlite:///{path}") as sessions:
        document = sessions.export(fill(sessions))
        sessions.delete(document["session_id"])
        sessions.create()
    return path, document


@pytest.fixture
def document(made):
    """A document with a bit of everything."""
    return copy.deepcopy(made[1])


@pytest.fixture
def store(made, tmp_path):
    """A database with one session."""
    shutil.copy(made[0], tmp_path / "store.db")
    with open_sessions(f"sqlite:///{tmp_path}/store.db") as sessions:
        yield sessions


def essence(document):
    """What an import must not change."""
    changed = {"session_id", "forked_from", "automation_level", "checksum"}
    kept = {key: value for key, value in document.items() if key not in changed}
    kept["metadata"] = {key: value for key, value in document["metadata"].items() if key != "imported_from"}
    return json.dumps(kept)


def texts_of(document):
    """The text of a document, with its keys in our order and in another one."""
    return json.dumps(document), json.dumps(dict(reversed(document.items())))


def forms(document):
    """A document as a program has it, and as a file has it."""
    return document, *texts_of(document)


class TestRoundTrips:
    def test_c56_export_import_export_keeps_everything_but_what_it_says(self, sessions):
        session_id = fill(sessions)
        first = sessions.export(session_id)
        second = sessions.export(sessions.import_(first).session_id)
        assert list(first) == list(second)
        assert essence(first) == essence(second)
        assert second["session_id"] != first["session_id"]
        assert second["forked_from"] is None
        assert second["metadata"]["imported_from"] == {
            "session_id": session_id,
            "checksum": first["checksum"],
            "forked_from": None,
        }

    def test_c62_nothing_drifts_over_five_rounds(self, sessions):
        document = sessions.export(fill(sessions))
        first = essence(document)
        for _ in range(5):
            document = sessions.export(sessions.import_(json.dumps(document, indent=2)).session_id)
            assert essence(document) == first

    def test_an_export_can_be_found_again_by_its_checksum(self, sessions):
        document = sessions.export(fill(sessions))
        assert sessions.list(imported_checksum=document["checksum"]) == []
        imported = sessions.import_(document)
        assert [each.session_id for each in sessions.list(imported_checksum=document["checksum"])] == [
            imported.session_id
        ]

    def test_an_import_takes_its_place_among_the_others_by_its_age(self, sessions):
        old = sessions.create().session_id
        document = sessions.export(old)
        young = sessions.create().session_id
        imported = sessions.import_(document).session_id
        listed = [summary.session_id for summary in sessions.list()]
        assert listed[0] == young
        assert set(listed[1:]) == {old, imported}
        sessions.append(imported, "user", "hello")
        assert sessions.list()[0].session_id == imported

    def test_c89_ids_in_lower_case_are_the_same_ids(self, store, document):
        lower = signed(
            document
            | {
                "session_id": document["session_id"].lower(),
                "linked_plan_ids": [plan.lower() for plan in PLANS],
                "linked_plans": [each | {"plan_id": each["plan_id"].lower()} for each in document["linked_plans"]],
            }
        )
        imported = store.import_(lower)
        assert imported.linked_plan_ids == PLANS
        assert imported.metadata["imported_from"]["session_id"] == document["session_id"]

    def test_a_fork_that_is_imported_remembers_where_it_came_from(self, store, document):
        imported = store.import_(signed(document | {"forked_from": PLANS[0]}))
        assert imported.forked_from is None
        assert imported.metadata["imported_from"]["forked_from"] == PLANS[0]


class TestWhatAnImportMayNotDecide:
    def test_the_file_it_was_run_with_is_kept_with_its_origin_alone(self, store, document):
        ours = {"cleveragents": {"config": "/x/strange.yaml", "global_context": {"stage": 2}}}
        summary = store.summary(store.import_(signed(document | {"metadata": ours})).session_id)
        assert summary.metadata["cleveragents"] == {"global_context": {"stage": 2}}
        assert summary.metadata["imported_from"]["config"] == "/x/strange.yaml"

    def test_so_it_is_in_a_document_of_the_version_before(self, store, document):
        summary = store.summary(store.import_(signed(document | {"metadata": {"config": "strange.yaml"}})).session_id)
        assert summary.metadata.keys() == {"imported_from"}
        assert summary.metadata["imported_from"]["config"] == "strange.yaml"

    def test_its_automation_level_is_not_taken_over(self, store, document):
        assert store.import_(signed(document | {"automation_level": "full_automation"})).automation_level is None

    def test_its_times_are_not_after_now(self, store, document):
        future = {"created_at": "2999-01-01T00:00:00.000000+00:00", "updated_at": "2999-01-02T00:00:00.000000+00:00"}
        imported = store.summary(store.import_(signed(document | future)).session_id)
        assert imported.created_at <= imported.updated_at < dt.datetime.now(dt.UTC)
        young = store.create().session_id
        assert store.list()[0].session_id == young

    def test_nobody_goes_on_with_it_unless_it_was_named(self, store, document):
        (mine,) = store.list()
        imported = store.import_(document).session_id
        store.append(imported, "user", "hello")
        assert store.list()[0].session_id == imported
        assert store.newest().session_id == mine.session_id
        store.delete(mine.session_id)
        with pytest.raises(errors.SessionNotFoundError, match="only what was imported and never run here"):
            store.newest()


class TestChecksum:
    def test_c59_form_does_not_matter_and_a_digit_does(self, store, document):
        reordered = json.loads(json.dumps(document, sort_keys=True))
        reformatted = json.dumps(dict(reversed(reordered.items())), indent=4, ensure_ascii=True)
        # JavaScript writes 6.0 as 6 and 1e-05 as 0.00001.
        by_javascript = reformatted.replace('"six": 6.0', '"six": 6').replace("1e-05", "0.00001")
        assert by_javascript != reformatted
        for text in (reformatted, by_javascript):
            store.import_(text)
        for old, new in (("9007199254740993", "9007199254740992"), ('"6.00001"', '"6.00002"'), ("1000", "1001")):
            assert old in reformatted
            changed = reformatted.replace(old, new, 1)
            with pytest.raises(errors.SessionChecksumError):
                store.import_(changed)

    def test_c61_line_ends_of_the_file_do_not_matter_and_those_in_messages_stay(self, store, document):
        text = json.dumps(document, indent=2).replace("\n", "\r\n")
        imported = store.import_(text.encode())
        assert [message.content for message in imported.messages if message.content][1:4] == ["a\n", "a\r\n", "a\r"]

    @given(
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-(2**53) + 1, 2**53 - 1)
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        )
    )
    def test_the_canonical_form_is_that_of_the_standard(self, value):
        assert canonical_json(value) == rfc8785.dumps(value)

    def test_money_is_text_so_that_no_program_rounds_it(self, document):
        assert document["token_usage"]["estimated_cost"] == "6.00001"
        assert [entry["estimated_cost"] for entry in document["usage_entries"]] == ["6", "0.00001", None]


class TestRefusals:
    """Each refusal names the fault, and the database is byte for byte what it was."""

    @pytest.fixture(autouse=True)
    def _unchanged(self, store, tmp_path):
        before = (tmp_path / "store.db").read_bytes()
        yield
        store.close()
        assert (tmp_path / "store.db").read_bytes() == before

    @pytest.mark.parametrize(
        ("version", "reason"),
        [
            ("1.2", "newer version"),
            ("2.0", "newer version"),
            ("99.0", "newer version"),
            ("0.9", "older than any"),
            ("1", "must be text"),
            (1.0, "must be text"),
            (1, "must be text"),
            (-1, "must be text"),
            ("-1.0", "must be text"),
            ("1.0.0", "must be text"),
            ("", "must be text"),
            (None, "missing"),
        ],
    )
    def test_c58_versions_are_told_apart(self, store, document, version, reason):
        for form in forms(signed(document | {"schema_version": version})):
            with pytest.raises(errors.SessionImportError, match=f"schema_version.*{reason}"):
                store.import_(form)

    @pytest.mark.parametrize("source", ["", "[]", "null", '"text"', "{}", "{", b"\xff\xfe", "not json", 7, None, [1]])
    def test_what_is_no_document_is_refused(self, store, source):
        with pytest.raises(errors.SessionImportError):
            store.import_(source)

    def test_a_truncated_document_is_refused(self, store, document):
        text = json.dumps(document)
        for length in range(1, len(text), 97):
            with pytest.raises(errors.SessionImportError, match="not JSON"):
                store.import_(text[:length])

    @pytest.mark.parametrize("depth", [201, 10_000, 100_000])
    def test_deep_nesting_is_refused(self, store, document, depth):
        nested: list = []
        for _ in range(depth):
            nested = [nested]
        text = json.dumps(document).replace('"none": null', f'"none": {"[" * depth}{"]" * depth}')
        for source in (document | {"metadata": {"deep": nested}}, text):
            with pytest.raises(errors.SessionImportError, match="nested deeper"):
                store.import_(source)

    def test_many_values_below_the_limit_are_refused_together(self, store, document, monkeypatch):
        monkeypatch.setattr(received, "LARGEST_VALUE", 20_000)
        longer = document | {"metadata": {"long": "x" * 15_000}, "title": "x" * 15_000}
        with pytest.raises(errors.SessionImportError, match="more than 20,000 characters besides its lists"):
            store.import_(json.dumps(signed(longer)))

    def test_a_key_that_comes_twice_is_refused(self, store, document):
        text = json.dumps(document)
        for twice in ('"title": "x", "title": ', '"messages": [], "title": '):
            with pytest.raises(errors.SessionImportError, match="comes twice"):
                store.import_(text.replace('"title": ', twice, 1))

    @pytest.mark.parametrize("stated", [None, "", 1, "sha256:", "md5:00"])
    def test_a_checksum_that_is_missing_or_wrong_is_refused(self, store, document, stated):
        for form in forms(document | {"checksum": stated}):
            with pytest.raises(errors.SessionImportError, match="checksum"):
                store.import_(form)

    @pytest.mark.parametrize("key", [*transfer.KEYS])
    def test_a_missing_field_is_named(self, store, document, key):
        rest = {name: value for name, value in document.items() if name != key}
        for form in forms(rest if key == "checksum" else signed(rest)):
            with pytest.raises(errors.SessionImportError, match=key):
                store.import_(form)

    def test_an_unknown_field_is_named(self, store, document):
        for form in forms(signed(document | {"surprise": 1})):
            with pytest.raises(errors.SessionImportError, match="surprise"):
                store.import_(form)

    @pytest.mark.parametrize(
        ("place", "value", "named"),
        [
            (("messages", 0, "role"), "robot", r"messages\[0\]: role"),
            (("messages", 1, "sequence"), 3, "ordered by sequence"),
            (("messages", 5, "sequence"), 6, "ordered by sequence"),
            (("messages", 2, "sequence"), "2", r"messages\[2\]: sequence"),
            (("messages", 2), "not a message", r"messages\[2\] .*object"),
            (("messages", 2, "tool_calls"), [], r"messages\[2\]: tool_calls"),
            (("messages", 3, "tool_call_id"), None, r"messages\[3\]: .*tool_call_id"),
            (("messages", 1, "content"), "  ", r"messages\[1\]: .*whitespace"),
            (("messages", 1, "content"), None, r"messages\[1\]: content"),
            (("messages", 1, "content"), ["a"], r"messages\[1\]\.content"),
            (("messages", 1, "metadata"), [], r"messages\[1\]\.metadata"),
            (("messages", 1, "created_at"), "", r"messages\[1\]: created_at"),
            (("messages",), {}, "messages.*list"),
            (("token_usage", "input_tokens"), -1, "token_usage: input_tokens"),
            (("token_usage", "output_tokens"), 1.5, "token_usage: output_tokens"),
            (("token_usage", "input_tokens"), 5, "sum of its usage_entries"),
            (("token_usage", "estimated_cost"), "5.99", "sum of its usage_entries"),
            (("token_usage", "estimated_cost"), 6.0, "token_usage: estimated_cost"),
            (("token_usage", "estimated_cost"), "-1", "token_usage: estimated_cost"),
            (("token_usage", "cost_complete"), 1, "cost_complete"),
            (("token_usage", "cost_complete"), True, "cost_complete"),
            (("usage_entries", 1, "estimated_cost"), "many", r"usage_entries\[1\]: estimated_cost"),
            (("usage_entries", 1, "created_at"), "today", r"usage_entries\[1\]: created_at"),
            (("session_id",), "notavalidulidnotavalidulid", "not a valid id"),
            (("forked_from",), "x", "not a valid id"),
            (("linked_plans", 0, "plan_id"), "xyz", r"linked_plans\[0\]: .*not a valid id"),
            (("linked_plans", 1, "plan_id"), PLANS[0], "linked_plans"),
            (("linked_plan_ids",), [], "linked_plan_ids"),
            (("actor_name",), "Team/Bot", "namespace/name"),
            (("namespace",), None, "namespace"),
            (("automation_level",), "auto", "automation_level"),
            (("title",), "", "title"),
            (("tags",), ["a", 1], "tag"),
            (("metadata",), None, "metadata"),
            (("updated_at",), "2001-01-01T00:00:00Z", "updated_at"),
        ],
    )
    def test_c65_every_field_is_checked_and_named(self, store, document, place, value, named):
        *path, last = place
        target = document
        for key in path:
            target = target[key]
        target[last] = value
        for form in forms(signed(document)):
            with pytest.raises(errors.SessionImportError, match=named):
                store.import_(form)

    @pytest.mark.parametrize("time", [1767225600.5, 1767225600, "2026-01-01T00:00:00", "", "2026-01-01", "x", None, []])
    def test_c41_a_time_in_another_form_is_named(self, store, document, time):
        for form in forms(signed(document | {"created_at": time})):
            with pytest.raises(errors.SessionImportError, match="created_at"):
                store.import_(form)


@pytest.mark.parametrize("form", ["2026-01-01T00:00:00Z", "2026-01-01T05:30:00+05:30", "2025-12-31T16:00:00.000-08:00"])
def test_c41_any_offset_is_accepted_and_becomes_utc(store, document, form):
    times = dict.fromkeys(("created_at", "updated_at"), form)
    imported = store.import_(signed(document | times))
    assert store.export(imported.session_id)["created_at"] == "2026-01-01T00:00:00.000000+00:00"
    assert store.list()[-1].created_at == imported.created_at


def test_the_ledger_keeps_cached_and_reasoning_tokens_and_documents_before_it_have_none(sessions):
    session_id = sessions.create().session_id
    sessions.add_usage(session_id, 100, 50, 0.5, llm="openai:any", cached_tokens=80, reasoning_tokens=40)
    document = sessions.export(session_id)
    (entry,) = document["usage_entries"]
    assert (document["schema_version"], entry["cached_tokens"], entry["reasoning_tokens"]) == ("1.1", 80, 40)
    copy = sessions.import_(document)
    assert [(e.cached_tokens, e.reasoning_tokens) for e in copy.usage_entries] == [(80, 40)]
    del entry["cached_tokens"], entry["reasoning_tokens"]
    old = document | {"schema_version": "1.0"}
    old["checksum"] = checksum({key: value for key, value in old.items() if key != "checksum"})
    assert [(e.cached_tokens, e.reasoning_tokens) for e in sessions.import_(old).usage_entries] == [(0, 0)]
