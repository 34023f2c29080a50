"""What is stored comes back as it was: text, values and times, on both databases and through a document."""

import datetime as dt
import json
import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cleveragents import MessageDraft, SessionService, errors, open_sessions
from cleveragents.sessions.open import open_database
from cleveragents.sessions.sql.rows import from_text, to_text
from cleveragents.sessions.sql.store import SqlSessionStore

TEXTS = {
    "nul": "W\x00s\x00l\x00",
    "only nul": "\x00",
    "the escape character": "a\x10b\x100c\x10\x10\x00\x10",
    "controls": "".join(map(chr, range(1, 32))) + "\x7f\x80\x9f",
    "emoji": "👩\u200d👩\u200d👧 🎉",
    "right to left": "שלום \u202eabc\u202c العربية",
    "decomposed": "e\u0301 and \u00e9",
    "line ends": "a\nb\r\nc\rd\u2028e\x85",
    "edges of planes": "\ud7ff\ue000\uffff\U00010000\U0010ffff",
    "outer space": "  \tx \n",
    "quotes": """'; DROP TABLE messages; -- "%s" %(a)s {x} {{y}} \\ $1 ?""",
}
VALUES = {
    "big": 2**53 + 1,
    "bigger": -(2**80),
    "many digits": 10**4000,
    "float": 0.1 + 0.2,
    "tiny": 5e-324,
    "whole float": 6.0,
    "text": "\x00 \x10 \U0001f389",
    "\x00key\x10": [None, True, [], {}, ""],
    "nested": {"a": [{"b": {"c": [1, 2.5]}}]},
}


def exact(value):
    """``value`` in a form that tells 1 from 1.0 and True."""
    return json.dumps(value)


class TestText:
    @pytest.mark.parametrize("kind", TEXTS)
    def test_c26_every_character_survives(self, sessions, kind):
        text = TEXTS[kind]
        session_id = sessions.create(title=f"x{text}", metadata={"k": text}).session_id
        sessions.append(session_id, "user", f"x{text}", agent=f"x{text}", tool_call_id=f"x{text}", parts=[text])
        sessions.add_usage(session_id, 1, 1, None, llm=f"x{text}")
        sessions.link_plan(session_id, "01BX5ZZKBKACTAV9WEVGEMMVRZ", f"x{text}", f"x{text}")
        imported = sessions.import_(json.dumps(sessions.export(session_id)))
        for found in (sessions.get(session_id), sessions.get(imported.session_id)):
            (message,) = found.messages
            assert {message.content, message.agent, message.tool_call_id, found.title} == {f"x{text}"}
            assert message.parts == [text]
            assert found.metadata["k"] == text
            assert found.usage_entries[0].llm == f"x{text}"
            assert (found.linked_plans[0].phase, found.linked_plans[0].state) == (f"x{text}", f"x{text}")
            assert found.messages == sessions.messages(session_id)

    @given(st.text())
    def test_the_escape_of_nul_is_reversible_and_leaves_no_nul(self, text):
        stored = to_text(text)
        assert stored is not None
        assert "\x00" not in stored
        assert from_text(stored) == text
        if "\x00" not in text and "\x10" not in text:
            assert stored is text

    def test_c25_a_lone_surrogate_is_replaced_once_and_never_grows(self, sessions):
        session_id = sessions.create(title="a\ud800").session_id
        text = "caf\udce9"
        for _ in range(3):
            text = sessions.append(session_id, "tool", f"{text}", tool_call_id="c\udfff").content
        assert text == "caf\ufffd"
        found = sessions.get(session_id)
        assert found.title == "a\ufffd"
        assert {(each.content, each.tool_call_id) for each in found.messages} == {("caf\ufffd", "c\ufffd")}

    def test_ten_megabytes_of_text_survive(self, sessions):
        text = "0123456789abcdé\n" * 655_360
        session_id = sessions.create().session_id
        sessions.append(session_id, "user", text, metadata={"copy": text})
        (found,) = sessions.last_messages(session_id, 1)
        assert found.content == text
        assert found.metadata == {"copy": text}
        again = sessions.import_(sessions.export(session_id))
        assert sessions.get(again.session_id).messages == [found]

    def test_c28_the_locale_changes_nothing(self, sessions, database_url):
        session_id = sessions.create().session_id
        program = (
            "import sys; from cleveragents import open_sessions\n"
            "with open_sessions(sys.argv[1]) as sessions:\n"
            "    sessions.append(sys.argv[2], 'user', '\\u041f\\u0440\\u0438\\u0432\\u0435\\u0442 \\U0001f389')\n"
            "    print(ascii(sessions.messages(sys.argv[2])[0].content))\n"
        )
        environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        done = subprocess.run(
            [sys.executable, "-c", program, database_url, session_id],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == ascii("Привет 🎉")
        assert sessions.messages(session_id)[0].content == "Привет 🎉"


class TestValues:
    def test_c34_c37_values_come_back_with_their_types(self, sessions):
        calls = [{"id": "c", "name": "f", "arguments": VALUES}]
        session_id = sessions.create(metadata=VALUES).session_id
        sessions.append(session_id, "assistant", None, metadata=VALUES, tool_calls=calls, parts=[VALUES])
        imported = sessions.import_(json.dumps(sessions.export(session_id)))
        for found in (sessions.get(session_id), sessions.get(imported.session_id)):
            (message,) = found.messages
            assert exact(message.metadata) == exact(VALUES)
            assert exact(message.parts) == exact([VALUES])
            assert exact(message.tool_calls) == exact(calls)
            kept = {key: value for key, value in found.metadata.items() if key != "imported_from"}
            assert exact(kept) == exact(VALUES)

    def test_c29_null_content_stays_null(self, sessions):
        session_id = sessions.create().session_id
        turn = [
            MessageDraft("user", "2 + 3?"),
            MessageDraft("assistant", None, tool_calls=[{"id": "c", "function": {"name": "add", "arguments": "{}"}}]),
            MessageDraft("tool", "5", tool_call_id="c"),
            MessageDraft("assistant", "Five."),
        ]
        sessions.append_all(session_id, turn)
        imported = sessions.import_(json.dumps(sessions.export(session_id))).session_id
        for found in (sessions.get(session_id), sessions.get(imported)):
            assert [message.content for message in found.messages] == ["2 + 3?", None, "5", "Five."]
            recent = found.as_cli_dict()["recent_messages"]
            assert [each["content"] for each in recent] == ["2 + 3?", "[calls add]", "5", "Five."]

    def test_c31_parts_survive_beside_their_text(self, sessions):
        parts = [{"text": "what is this?"}, {"image": "data:image/png;base64," + "QUJD" * 10}]
        session_id = sessions.create().session_id
        sessions.append(session_id, "user", parts)
        imported = sessions.import_(sessions.export(session_id)).session_id
        for found in (session_id, imported):
            (message,) = sessions.messages(found)
            assert message.content == "what is this? [image]"
            assert message.parts == parts

    @settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(
        content=st.text(min_size=1).filter(lambda text: not text.isspace()),
        metadata=st.dictionaries(
            st.text(),
            st.recursive(
                st.none()
                | st.booleans()
                | st.integers()
                | st.floats(allow_nan=False, allow_infinity=False)
                | st.text(),
                lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
                max_leaves=8,
            ),
            max_size=3,
        ),
    )
    def test_any_message_survives_the_store_and_a_document(self, sessions, content, metadata):
        session_id = sessions.create(metadata=metadata).session_id
        stored = sessions.append(session_id, "user", content, metadata=metadata)
        assert stored.content == content
        document = json.loads(json.dumps(sessions.export(session_id)))
        imported = sessions.get(sessions.import_(document).session_id)
        assert sessions.get(session_id).messages == [stored] == imported.messages
        assert exact(imported.messages[0].metadata) == exact(metadata)


class TestTimes:
    def test_c40_a_moment_is_the_same_in_every_time_zone(self, sessions, database_url):
        program = (
            "import sys; from cleveragents import open_sessions\n"
            "with open_sessions(sys.argv[1]) as sessions:\n"
            "    session = sessions.get(sys.argv[2]) if len(sys.argv) > 2 else sessions.create()\n"
            "    print(session.session_id, session.created_at.isoformat(), session.created_at.timestamp())\n"
        )

        def run(zone, *arguments):
            command = [sys.executable, "-c", program, database_url, *arguments]
            done = subprocess.run(command, env=os.environ | {"TZ": zone}, capture_output=True, text=True, check=True)
            return done.stdout.split()

        made = run("Asia/Kolkata")
        assert made == run("America/Los_Angeles", made[0]) == run("UTC", made[0])
        assert made[1].endswith("+00:00")
        assert sessions.export(made[0])["created_at"] == made[1]

    def test_c40_the_hour_that_comes_twice_is_two_hours(self, database_url):
        before = dt.datetime(2026, 11, 1, 1, 30, tzinfo=dt.timezone(dt.timedelta(hours=-7)))
        after = dt.datetime(2026, 11, 1, 1, 30, tzinfo=dt.timezone(dt.timedelta(hours=-8)))
        clock = [before]
        with SessionService(SqlSessionStore(open_database(database_url)), now=lambda: clock[0]) as sessions:
            session_id = sessions.create().session_id
            clock[0] = after
            sessions.append(session_id, "user", "an hour later")
            found = sessions.get(session_id)
        assert found.updated_at - found.created_at == dt.timedelta(hours=1)

    @pytest.mark.parametrize(
        "moment",
        [dt.datetime(1, 1, 2, 0, 0, 0, 1, dt.UTC), dt.datetime(9999, 12, 30, 23, 59, 59, 999999, dt.UTC)],
    )
    def test_microseconds_survive_at_both_ends_of_time(self, database_url, moment):
        with SessionService(SqlSessionStore(open_database(database_url)), now=lambda: moment) as sessions:
            session_id = sessions.create().session_id
            sessions.append(session_id, "user", "x")
            found = sessions.get(session_id)
            assert found.created_at == found.messages[0].created_at == moment
            assert sessions.import_(sessions.export(session_id)).created_at == moment


def test_c26_a_session_travels_between_the_databases_unchanged(tmp_path, postgres):
    calls = [{"id": "c", "name": "f", "arguments": VALUES}]
    there_and_back = [f"sqlite:///{tmp_path}/a.db", postgres.new_database(), f"sqlite:///{tmp_path}/b.db"]
    with open_sessions(there_and_back[0]) as sessions:
        session_id = sessions.create("team/bot", title=TEXTS["nul"], metadata=VALUES, tags=["t"]).session_id
        for text in TEXTS.values():
            sessions.append(session_id, "user", f"x{text}", metadata=VALUES)
        sessions.append(session_id, "assistant", None, tool_calls=calls)
        sessions.add_usage(session_id, 5, 7, 0.1, llm=TEXTS["nul"])
        sessions.add_usage(session_id, 5, 7, None)
        sessions.link_plan(session_id, "01BX5ZZKBKACTAV9WEVGEMMVRZ", TEXTS["emoji"])
        first = sessions.export(session_id)
    document = first
    for url in there_and_back[1:]:
        with open_sessions(url) as sessions:
            document = sessions.export(sessions.import_(json.dumps(document)).session_id)
    changed = {"session_id", "forked_from", "metadata", "checksum"}
    assert {key for key in first if exact(first[key]) != exact(document[key])} == changed - {"forked_from"}
    assert exact({k: v for k, v in document["metadata"].items() if k != "imported_from"}) == exact(VALUES)


def test_c41_a_row_that_another_program_spoilt_is_named(tmp_path):
    with open_sessions(f"sqlite:///{tmp_path}/s.db") as sessions:
        good, bad = sessions.create().session_id, sessions.create().session_id
        database = open_database(f"sqlite:///{tmp_path}/s.db")
        with database.writing() as db:
            db.rows("UPDATE sessions SET metadata = '{' WHERE id = :id", {"id": bad})
        # A time in another form does not even get in.
        with pytest.raises(errors.SessionStorageError), database.writing() as db:
            db.rows("UPDATE sessions SET created_at = '2026-01-01T00:00:00Z' WHERE id = :id", {"id": good})
        database.close()
        with pytest.raises(errors.SessionDamagedError, match=bad):
            sessions.get(bad)
        assert sessions.get(good).messages == []
