"""``cleveragents session export``, ``import``, ``verify``: files, and contexts made of sessions and back."""

import json
import stat

import pytest

from cleveragents import ContextManager, MessageDraft, list_contexts, open_sessions
from cleveragents.values.canonical import checksum
from support.command import C_LOCALE, command, ok, one_line
from support.session_documents import checked
from support.terminal import on_a_terminal


@pytest.fixture
def here(tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


@pytest.fixture
def run(home, here):
    return lambda *arguments, **options: command("session", *arguments, home=home, cwd=here, **options)


@pytest.fixture
def talk(store):
    session_id = store.create("team/bot", title="a b/../c", tags=["x"]).session_id
    store.append_all(
        session_id,
        [
            MessageDraft("user", "naïve 🎉"),
            MessageDraft("assistant", None, tool_calls=[{"id": "c1", "name": "weather"}], agent="planner"),
            MessageDraft("tool", "sunny", tool_call_id="c1", metadata={"failed": False}),
            MessageDraft("assistant", ["To the sea.", {"type": "image_url"}]),  # type: ignore[arg-type]
            MessageDraft("system", "text", parts=[{"type": "text", "text": "another"}]),
        ],
    )
    store.add_usage(session_id, 10, 5, 0.25, llm="x:1")
    store.link_plan(session_id, "01ARZ3NDEKTSV4RRFFQ69G5FAV", phase="draft")
    store.update(session_id, metadata={"cleveragents": {"global_context": {"stage": 2}, "config": "/x.yaml"}})
    return session_id


def files(folder):
    return sorted(path.name for path in folder.iterdir())


# --- export ---------------------------------------------------------------------------------------------


def test_c64_an_export_has_a_safe_name_in_the_current_folder_that_is_printed(run, talk, here, store):
    name = f"{talk}.session.json"
    assert ok(run("export", talk.lower())) == f"{name}\n"
    assert files(here) == [name]
    assert json.loads((here / name).read_bytes()) == store.export(talk)
    assert stat.S_IMODE((here / name).stat().st_mode) == 0o600


def test_c64_what_is_there_is_kept_unless_forced(run, talk, here, store):
    file = here / "x.json"
    file.write_text("mine", encoding="utf-8")
    assert "x.json exists already" in one_line(run("export", talk, "--output", "x.json"), 1)
    assert file.read_text(encoding="utf-8") == "mine"
    assert ok(run("export", talk, "--output", "x.json", "--force")) == "x.json\n"
    assert json.loads(file.read_bytes()) == store.export(talk)
    for output in (here, here / "none" / "x.json"):
        assert str(output) in one_line(run("export", talk, "--output", output), 1)
    assert files(here) == ["x.json"]


def test_c64_standard_output_gets_nothing_but_the_document(run, talk, here, store):
    done = run("export", talk, "--output", "-")
    assert json.loads(ok(done)) == store.export(talk)
    assert done.stderr == ""
    assert files(here) == []


# --- import ---------------------------------------------------------------------------------------------


def test_an_import_is_a_new_session_with_all_that_was_exported(run, talk, here, store):
    file = ok(run("export", talk)).strip()
    done = run("import", file, "--again")
    made = store.get(ok(done).strip())
    original = store.get(talk)
    assert made.session_id != talk
    assert (made.messages, made.usage_entries, made.tags) == (
        original.messages,
        original.usage_entries,
        original.tags,
    )
    assert made.metadata["imported_from"]["session_id"] == talk
    assert made.created_at == original.created_at


def test_a_document_whose_own_session_is_still_here_is_imported_only_when_again_is_asked_for(run, talk, here, store):
    file = here / ok(run("export", talk)).strip()
    store.append(talk, "user", "and one more")
    for name in (file, "-"):
        done = run("import", name, stdin=file.read_bytes()) if name == "-" else run("import", name)
        line = one_line(done, 1)
        assert f"session {talk}, which is still here" in line
        assert "--again" in line
    assert len(store.list()) == 1
    copy = ok(run("import", file, "--again")).strip()
    assert store.count(copy) == 5
    store.delete(talk)
    store.delete(copy)
    assert store.count(ok(run("import", file)).strip()) == 5


def test_the_same_document_is_imported_once_unless_again_is_asked_for(run, talk, here, store):
    file = here / ok(run("export", talk)).strip()
    store.delete(talk)
    first = ok(run("import", file)).strip()
    indented = here / "indented.json"
    indented.write_text(json.dumps(json.loads(file.read_bytes()), indent=7, sort_keys=True), encoding="utf-8")
    for again in (file, indented):
        line = one_line(run("import", again), 1)
        assert first in line
        assert "--again" in line
    assert len(store.list()) == 1
    assert ok(run("import", file, "--again")).strip() != first
    assert len(store.list()) == 2


def test_a_file_of_more_than_the_wanted_size_is_refused_and_nothing_of_it_kept(run, talk, here, store):
    file = ok(run("export", talk)).strip()
    size = (here / file).stat().st_size
    store.delete(talk)
    for name in ("import", "verify"):
        line = one_line(run(name, file, "--max-size", str(size - 1)), 5)
        assert f"{file}: larger than --max-size allows ({size - 1:,} bytes)" in line
    assert store.list() == []
    ok(run("verify", file, "--max-size", str(size)))
    ok(run("import", file, "--max-size", str(size)))


def test_an_export_can_be_piped_into_an_import_of_another_database(run, talk, store, home, tmp_path):
    document = ok(run("export", talk, "--output", "-"))
    done = command("session", "import", "-", home=tmp_path / "other", stdin=b"\xef\xbb\xbf" + document.encode())
    with open_sessions(f"sqlite:///{tmp_path / 'other' / 'cleveragents.db'}") as other:
        assert other.messages(ok(done).strip()) == store.messages(talk)


def damaged(document, kind):
    text = json.dumps(document)
    return {
        "empty": "",
        "not JSON": "{",
        "not UTF-8": b"\xff\xfe{}",
        "a list": "[]",
        "cut off": text[:-20],
        "changed": text.replace("sunny", "rainy"),
        "nested": "[" * 10_000 + "]" * 10_000,
        "of another version": text.replace('"1.1"', '"9.0"'),
        "without a checksum": json.dumps({name: value for name, value in document.items() if name != "checksum"}),
        "another document": '{"format": "cleveragents.context", "checksum": "sha256:0"}',
    }[kind]


@pytest.mark.parametrize(
    "kind",
    [
        "empty",
        "not JSON",
        "not UTF-8",
        "a list",
        "cut off",
        "changed",
        "nested",
        "of another version",
        "without a checksum",
        "another document",
    ],
)
def test_a_damaged_file_is_one_line_that_names_it_and_stores_nothing(run, talk, here, store, kind):
    content = damaged(store.export(talk), kind)
    (here / "bad.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    for name in ("import", "verify"):
        assert "bad.json: " in one_line(run(name, "bad.json"), 5)
    assert len(store.list()) == 1


def test_a_changed_copy_of_what_was_imported_is_told_to_be_changed(run, talk, here, store):
    file = here / ok(run("export", talk)).strip()
    ok(run("import", file, "--again"))
    file.write_bytes(file.read_bytes().replace(b"sunny", b"rainy"))
    assert "checksum does not match" in one_line(run("import", file), 5)


def test_a_missing_file_is_not_found(run, home):
    assert "no file 'nothing.json'" in one_line(run("import", "nothing.json"), 3)
    assert "no file 'nothing.json'" in one_line(run("verify", "nothing.json"), 3)
    assert "no file 'none/x'" in one_line(run("verify", "none/x"), 3)
    assert "FILE" in one_line(run("import"), 2)
    assert "FILE" in one_line(run("import", ".", "--from-context", "x"), 2)
    assert not home.exists()


# --- verify ---------------------------------------------------------------------------------------------


def test_verify_tells_that_a_session_and_its_file_are_whole(run, talk, here, store):
    file = ok(run("export", talk)).strip()
    stated = store.export(talk)["checksum"]
    assert ok(run("verify", "last")) == f"{talk} is whole: 5 messages, {stated}\n"
    assert ok(run("verify", file)) == f"{file} is whole: 5 messages, {stated}\n"
    for what, expected in ((talk, None), (file, file)):
        facts = checked(json.loads(ok(run("verify", what, "--format", "json"))), "verify")
        assert facts == {"file": expected, "session_id": talk, "messages": 5, "checksum": stated}


def test_files_are_found_in_a_locale_that_is_not_utf_8(run, talk, here):
    ok(run("export", talk, "--output", "é.json", env=C_LOCALE))
    assert files(here) == ["é.json"]
    assert json.loads(ok(run("verify", "é.json", "--format", "json", env=C_LOCALE)))["file"] == "é.json"
    ok(run("import", "é.json", "--again", env=C_LOCALE))


def test_verify_tells_of_damage_in_the_database(run, talk, home):
    from cleveragents.sessions.open import open_database

    database = open_database(f"sqlite:///{home / 'cleveragents.db'}")
    with database.writing() as db:
        db.rows("DELETE FROM messages WHERE sequence = 2", {})
    database.close()
    line = one_line(run("verify", talk), 5)
    assert talk in line
    assert "damaged" in line


def test_verify_tells_of_a_rule_that_a_file_with_a_right_checksum_breaks(run, talk, here, store):
    document = store.export(talk)
    document["messages"][2]["tool_call_id"] = None
    del document["checksum"]
    (here / "x.json").write_text(json.dumps(document | {"checksum": checksum(document)}), encoding="utf-8")
    assert "messages[2]" in one_line(run("verify", "x.json"), 5)


# --- far to go ------------------------------------------------------------------------------------------


def test_long_exports_and_imports_show_how_far_they_are_on_a_terminal_only(run, store, home, here, tmp_path):
    def apart(*arguments):
        """What is printed, and what is said on a terminal."""
        with (tmp_path / "out").open("wb") as file:
            said = on_a_terminal("session", *arguments, home=home, cwd=here, stdout=file)
        return (tmp_path / "out").read_text(encoding="utf-8"), said

    short, long = store.create().session_id, store.create().session_id
    store.append_all(long, [MessageDraft("user", "x" * 400)] * 20_000)
    out, said = apart("export", long)
    assert out == f"{long}.session.json\n"
    for shown in ("exporting", "20/20000", "10000/20000", "20000/20000"):
        assert shown in said
    out, said = apart("import", f"{long}.session.json", "--again")
    assert store.count(out.strip()) == 20_000
    for step in ("checking", "storing messages", "100%"):
        assert step in said
    assert apart("export", short)[1] == ""
    assert run("export", long, "--force").stderr == ""


# --- contexts -------------------------------------------------------------------------------------------


@pytest.fixture
def context(home):
    made = ContextManager("notes", home / "contexts")
    made.add_message("user", "naïve 🎉", {"via": "phone", "agent": 3})
    made.add_message("assistant", None, {"tool_calls": [{"id": "c1", "name": "weather"}], "agent": "planner"})
    made.add_message("tool", "sunny", {"tool_call_id": "c1"})
    made.add_message("tool", "of no call")
    made.add_message("assistant", ["To the sea.", {"type": "image_url"}])
    made.add_message("assistant", "")
    made.add_message("assistant", [])
    made.add_message("assistant", " ", {"tool_calls": [{"id": "c2", "name": "weather"}]})
    made.add_message("assistant", None, {"tool_calls": "odd"})
    made.update_state({"todo": [1]})
    made.update_global_context({"stage": "shopping"})
    made.update_metadata({"k": {"deep": None}, "context_state": "mine"})
    return made


def test_a_context_becomes_a_session_and_that_the_same_context_again(run, context, store, home):
    session_id = ok(run("import", "--from-context", "notes")).strip()
    session = store.get(session_id)
    assert session.title == "notes"
    assert session.metadata["cleveragents"]["global_context"] == {"stage": "shopping"}
    assert session.metadata["imported_from"]["context"] == "notes"
    assert [message.created_at for message in session.messages] == [message.timestamp for message in context.messages]
    assert [str(message.role) for message in session.messages] == [message.role for message in context.messages]
    assert session.messages[1].tool_calls == [{"id": "c1", "name": "weather"}]
    assert (session.messages[1].agent, session.messages[2].tool_call_id) == ("planner", "c1")
    assert session.messages[4].parts == ["To the sea.", {"type": "image_url"}]
    assert session.messages[5].content == "[nothing]"
    assert store.verify(session_id)

    done = command("context", "import", "--from-session", session_id[:24].lower(), "--name", "back", home=home)
    assert ok(done) == ""
    back = ContextManager.open("back", home / "contexts")
    assert back.messages == context.messages
    assert (back.state, back.global_context) == (context.state, context.global_context)
    assert back.metadata.items() >= context.metadata.items()
    assert back.metadata.keys() - context.metadata.keys() == {"cleveragents"}


def test_a_session_becomes_a_context_and_that_the_same_session_again(run, talk, store, home):
    assert f"context '{talk}' was imported" in command("context", "import", "--from-session", "last", home=home).stderr
    context = ContextManager.open(talk, home / "contexts")
    assert context.global_context == {"stage": 2}
    assert context.messages[1].content is None
    assert context.messages[3].content == ["To the sea.", {"type": "image_url"}]
    again = store.export(ok(run("import", "--from-context", talk)).strip())
    original = store.export(talk)
    origin = again["metadata"].pop("imported_from")
    assert origin["context"] == talk
    assert origin["config"] == original["metadata"]["cleveragents"].pop("config") == "/x.yaml"
    assert again | {"session_id": None, "checksum": None} == original | {"session_id": None, "checksum": None}


def test_a_context_that_has_not_changed_is_imported_once(run, context, store):
    first = ok(run("import", "--from-context", "notes")).strip()
    assert first in one_line(run("import", "--from-context", "notes"), 1)
    ok(run("import", "--from-context", "notes", "--again"))
    context.add_message("user", "more")
    ok(run("import", "--from-context", "notes"))
    assert len(store.list()) == 3


def test_what_is_not_there_is_neither_made_nor_imported(run, home, store, context):
    assert "'nobody'" in one_line(run("import", "--from-context", "nobody"), 3)
    assert "no session yet" in one_line(command("context", "import", "--from-session", "last", home=home), 3)
    one_line(command("context", "import", home=home), 2)
    assert list_contexts(home / "contexts") == ["notes"]
    assert store.list() == []


def test_a_taken_name_is_kept_unless_forced(talk, context, home):
    arguments = ("context", "import", "--from-session", talk, "--name", "notes")
    assert "'notes'" in one_line(command(*arguments, home=home), 1)
    assert len(context.messages) == 9
    assert command(*arguments, "--force", home=home).returncode == 0
    assert len(ContextManager.open("notes", home / "contexts").messages) == 5


def test_what_was_a_session_and_is_none_any_more_is_refused(run, context, store):
    context.update_metadata({"cleveragents": {"session": {"session_id": "x"}}})
    assert "schema_version" in one_line(run("import", "--from-context", "notes"), 5)
    assert store.list() == []
