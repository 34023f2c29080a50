"""Finding sessions: by the beginning of an id, by time, by tag; and the figures over all of them."""

import datetime as dt
import itertools

import pytest

from cleveragents import MessageDraft, SessionService, errors
from cleveragents.sessions.open import open_database
from cleveragents.sessions.sql.store import SqlSessionStore
from cleveragents.values.ids import new_ulid

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)


@pytest.fixture
def at(database_url):
    """The sessions as a process sees them whose clock shows a given time."""
    database = open_database(database_url)
    yield lambda moment: SessionService(SqlSessionStore(database), now=lambda: moment)
    database.close()


def ids(summaries):
    return [summary.session_id for summary in summaries]


class TestFinding:
    def test_a_session_is_found_by_its_whole_id_its_beginning_and_last(self, sessions):
        first, second = sessions.create().session_id, sessions.create().session_id
        assert sessions.find(first) == first
        assert sessions.find(first.lower()) == first
        shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=True)))
        assert sessions.find(first[: shared + 1].lower()) == first
        assert sessions.find("last") == second
        sessions.append(first, "user", "x")
        assert sessions.find("last") == first

    def test_a_beginning_that_several_ids_have_names_them(self, sessions):
        made = [sessions.create().session_id for _ in range(3)]
        with pytest.raises(errors.SessionAmbiguousError) as caught:
            sessions.find(made[0][:4])
        assert all(each in str(caught.value) for each in made)
        assert "others" not in str(caught.value)
        made += [sessions.create().session_id for _ in range(4)]
        with pytest.raises(errors.SessionAmbiguousError, match="and others") as caught:
            sessions.find(made[0][:4])
        assert sum(each in str(caught.value) for each in made) == 5

    def test_what_is_not_there_is_not_found(self, sessions):
        with pytest.raises(errors.SessionNotFoundError, match="no session yet"):
            sessions.find("last")
        sessions.create()
        with pytest.raises(errors.SessionNotFoundError, match="7ZZ"):
            sessions.find("7zz")
        unknown = new_ulid()
        assert sessions.find(unknown) == unknown
        with pytest.raises(errors.SessionNotFoundError):
            sessions.summary(sessions.find(unknown))

    @pytest.mark.parametrize(
        "text", ["", " ", "first", "01ARZ3 ", "8", "%", "_", "01ARZ3NDEKTSV4RRFFQ69G5FAVX", "\uff10\uff11", "0" * 99]
    )
    def test_c88_what_no_id_begins_with_is_not_looked_for(self, sessions, text):
        sessions.create()
        with pytest.raises(errors.InvalidIdError, match="not a valid id"):
            sessions.find(text)

    def test_a_beginning_narrows_a_list_as_any_other_condition(self, sessions):
        first = sessions.create("a/b").session_id
        sessions.create("a/c")
        assert ids(sessions.list(id_prefix=first, actor_name="a/b")) == [first]
        assert sessions.list(id_prefix=first, actor_name="a/c") == []
        assert len(sessions.list(id_prefix=first[0])) == 2


class TestTimes:
    def test_lists_are_of_what_changed_since_and_until(self, at):
        early, late = at(NOON).create().session_id, at(NOON + HOUR).create().session_id
        list_ = at(NOON).list
        assert ids(list_(since=NOON)) == [late, early]
        assert ids(list_(since=NOON + HOUR)) == [late]
        assert ids(list_(until=NOON + HOUR)) == [early]
        assert ids(list_(since=NOON, until=NOON)) == []
        assert ids(list_(since=NOON, until=NOON + 2 * HOUR)) == [late, early]
        assert ids(list_(since=NOON + 2 * HOUR)) == []
        at(NOON + 3 * HOUR).append(early, "user", "x")
        assert ids(list_(since=NOON + 2 * HOUR)) == [early]
        assert ids(list_(until=NOON + 2 * HOUR)) == [late]

    def test_a_clock_that_is_behind_changes_the_order_not_the_times(self, at):
        late = at(NOON + HOUR).create().session_id
        behind = at(NOON).create().session_id
        assert ids(at(NOON).list()) == [behind, late]
        assert ids(at(NOON).list(since=NOON + HOUR)) == [late]
        assert ids(at(NOON).list(until=NOON + HOUR)) == [behind]
        at(NOON).append(late, "user", "x")
        assert ids(at(NOON).list(since=NOON + HOUR)) == [late]

    def test_a_time_needs_a_time_zone(self, sessions):
        for name in ("since", "until"):
            with pytest.raises(errors.SessionValidationError, match=name):
                sessions.list(**{name: NOON.replace(tzinfo=None)})

    def test_another_zone_is_the_same_moment(self, at):
        session_id = at(NOON).create().session_id
        zone = dt.timezone(dt.timedelta(hours=5))
        assert ids(at(NOON).list(since=NOON.astimezone(zone))) == [session_id]
        assert ids(at(NOON).list(until=NOON.astimezone(zone))) == []


class TestTags:
    def test_tags_are_added_and_taken_away_beside_each_other(self, sessions):
        session_id = sessions.create(tags=["a", "b"]).session_id
        assert sessions.update(session_id, add_tags=["c", "a"], remove_tags=["b", "z"]).tags == ["a", "c"]
        assert sessions.update(session_id, add_tags=["a"], remove_tags=["a"]).tags == ["a", "c"]
        assert sessions.update(session_id, tags=["x"], add_tags=["y"]).tags == ["x", "y"]
        assert sessions.update(session_id, title="t").tags == ["x", "y"]
        assert ids(sessions.list(tag="y")) == [session_id]

    def test_a_bad_tag_changes_nothing(self, sessions):
        session_id = sessions.create(tags=["a"]).session_id
        with pytest.raises(errors.SessionValidationError):
            sessions.update(session_id, title="t", add_tags=[" "])
        assert sessions.summary(session_id).title is None


class TestStatistics:
    def test_sums_are_by_day_actor_and_llm(self, at):
        one = at(NOON).create("a/one").session_id
        two = at(NOON + 24 * HOUR).create().session_id
        at(NOON).append_all(one, [MessageDraft("user", "x")] * 3)
        at(NOON).append(two, "user", "x")
        at(NOON).add_usage(one, 10, 5, 0.1, llm="x:1")
        at(NOON + 24 * HOUR).add_usage(one, 1, 1, 0.2, llm="x:1")
        at(NOON + 24 * HOUR).add_usage(two, 100, 100, None)
        found = at(NOON).statistics()
        assert (found.total.sessions, found.total.messages, found.total.calls) == (2, 4, 3)
        assert (found.total.input_tokens, found.total.output_tokens) == (111, 106)
        assert (found.total.estimated_cost, found.total.cost_complete) == (0.3, False)
        days = {day.isoformat(): (tally.sessions, tally.messages, tally.calls) for day, tally in found.by_day.items()}
        assert days == {"2026-03-01": (1, 3, 1), "2026-03-02": (1, 1, 2)}
        assert list(found.by_actor) == [None, "a/one"]
        assert (found.by_actor["a/one"].nano_dollars, found.by_actor["a/one"].cost_complete) == (300_000_000, True)
        assert {llm: tally.calls for llm, tally in found.by_llm.items()} == {None: 1, "x:1": 2}
        assert list(found.by_llm) == [None, "x:1"]

    @pytest.mark.parametrize(
        ("moment", "day"),
        [
            ("1969-12-31T23:59:59.999999+00:00", "1969-12-31"),
            ("1970-01-01T00:00:00+00:00", "1970-01-01"),
            ("0001-01-01T00:00:00+00:00", "0001-01-01"),
            ("2026-03-01T23:30:00-02:00", "2026-03-02"),
        ],
    )
    def test_a_day_is_one_of_utc_however_early(self, at, moment, day):
        at(dt.datetime.fromisoformat(moment).astimezone(dt.UTC)).create()
        assert [each.isoformat() for each in at(NOON).statistics().by_day] == [day]

    def test_without_sessions_all_is_nothing(self, sessions):
        found = sessions.statistics()
        assert (found.total.sessions, found.by_day, found.by_actor, found.by_llm) == (0, {}, {}, {})


class TestVerifying:
    def test_what_is_whole_has_the_checksum_of_its_export(self, sessions):
        session_id = sessions.create("a/b", tags=["t"]).session_id
        sessions.append(session_id, "user", "x")
        sessions.add_usage(session_id, 1, 2, 0.5)
        assert sessions.verify(session_id) == sessions.export(session_id)["checksum"]

    @pytest.mark.parametrize(
        "damage",
        [
            "DELETE FROM messages WHERE sequence = 1",
            "DELETE FROM messages WHERE sequence = 2",
            "UPDATE messages SET content = ' ' WHERE sequence = 1",
            "UPDATE messages SET role = 'tool' WHERE sequence = 1",
            "UPDATE messages SET metadata = '[' WHERE sequence = 1",
            "UPDATE sessions SET input_tokens = 0",
            "UPDATE sessions SET namespace = 'A B'",
            "UPDATE usage_entries SET cost_nano = 600000000",
        ],
    )
    def test_what_was_changed_by_hand_is_damaged(self, sessions, database_url, damage):
        session_id = sessions.create().session_id
        sessions.append_all(session_id, [MessageDraft("user", text) for text in "abc"])
        sessions.add_usage(session_id, 1, 2, 0.5)
        database = open_database(database_url)
        with database.writing() as db:
            db.rows(damage, {})
        database.close()
        with pytest.raises(errors.SessionDamagedError, match=session_id):
            sessions.verify(session_id)


def test_a_session_from_elsewhere_keeps_its_times_and_where_it_came_from(sessions):
    original = sessions.create("a/b", metadata={"k": 1})
    original.append_message("user", "x")
    copy = sessions.adopt(original, {"program": "other"}, "sha256:1")
    assert copy.session_id != original.session_id
    stored = sessions.get(copy.session_id)
    assert stored.metadata == {"k": 1, "imported_from": {"program": "other"}}
    assert (stored.created_at, stored.messages) == (original.created_at, original.messages)
    assert ids(sessions.list(imported_checksum="sha256:1")) == [copy.session_id]
