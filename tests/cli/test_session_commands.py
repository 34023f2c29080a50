"""``cleveragents session``, as a user has it: looking at sessions, changing and deleting them."""

import datetime as dt
import json
import os
import pty
import re
import subprocess
import threading

import pytest
from jsonschema import Draft202012Validator

from cleveragents import MessageDraft, SessionService, open_sessions
from cleveragents.cli.session import COMMANDS as ALL_COMMANDS
from cleveragents.sessions.open import open_database
from cleveragents.sessions.sql.store import SqlSessionStore
from cleveragents.values.ids import new_ulid
from support.command import COMMAND, command, environment, one_line
from support.pages import page

PLAN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
COMMANDS = [*ALL_COMMANDS]
NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)

(SCHEMA,) = (block for block in page("commands.md").blocks("json") if "$defs" in block)
DEFINITIONS = json.loads(SCHEMA)["$defs"]


def checked(document, name):
    """``document`` after it was held to the schema that docs/commands.md has under ``name``."""
    schema = {"$defs": DEFINITIONS, "$ref": f"#/$defs/{name}", "unevaluatedProperties": False}
    if DEFINITIONS[name].get("type") == "array":
        del schema["unevaluatedProperties"]
    Draft202012Validator(schema).validate(document)
    return document


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def run(home, tmp_path):
    return lambda *arguments, **options: command("session", *arguments, home=home, cwd=tmp_path, **options)


@pytest.fixture
def store(home):
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


def ok(done):
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def listed(done):
    return [each["session_id"] for each in checked(json.loads(ok(done)), "list")]


# --- list -----------------------------------------------------------------------------------------------


def test_c86_the_newest_activity_comes_first(run, store):
    a, b, c = (store.create().session_id for _ in range(3))
    store.append(a, "user", "x")
    assert listed(run("list", "--format", "json")) == [a, c, b]
    assert listed(run("list", "--limit", "1", "--format", "json")) == [a]
    assert ok(run("show", "last")).startswith(f"session id: {a}\n")
    assert [line.split()[0] for line in ok(run("list")).splitlines()] == ["ID", a, c, b]


def test_a_list_goes_on_after_a_session_and_says_so(run, store):
    made = [store.create().session_id for _ in range(5)][::-1]
    first = run("list", "--limit", "2", "--format", "json")
    assert listed(first) == made[:2]
    assert f"--after {made[1]}" in first.stderr
    last = run("list", "--after", made[1].lower(), "--format", "json")
    assert listed(last) == made[2:]
    assert last.stderr == ""
    lines = ok(run("list", "--limit", "2", "--format", "jsonl")).splitlines()
    assert [checked(json.loads(line), "summary")["session_id"] for line in lines] == made[:2]


def test_a_list_is_narrowed_by_actor_tag_namespace_and_time(run, home):
    database = open_database(f"sqlite:///{home / 'cleveragents.db'}")

    def at(moment):
        return SessionService(SqlSessionStore(database), now=lambda: moment)

    early = at(NOON).create("a/one", tags=["x"]).session_id
    late = at(NOON + dt.timedelta(days=1)).create("a/two", namespace="team", tags=["x", "y"]).session_id
    database.close()

    def found(*arguments):
        return listed(run("list", "--format", "json", *arguments))

    assert found("--actor", "a/one") == [early]
    assert found("--namespace", "team") == [late]
    assert found("--tag", "x") == [late, early]
    assert found("--tag", "x", "--actor", "a/two") == [late]
    assert found("--since", "2026-03-02") == [late]
    assert found("--since", "2026-03-01T12:00:00.000001") == [late]
    assert found("--since", "2026-03-01T14:00+02:00") == [late, early]
    assert found("--until", "2026-03-01") == [early]
    assert found("--until", "2026-03-01T12:00") == []
    assert found("--until", "2026-03-02") == [late, early]
    assert "no session matches" in run("list", "--tag", "z").stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["--limit", "-1"],
        ["--limit", "ten"],
        ["--since", "yesterday"],
        ["--until", "2026-13-01"],
        ["--until", "9999-12-31"],
        ["--actor", "A B"],
        ["--namespace", "a/b"],
        ["--tag", " "],
        ["--after", "x!"],
        ["--format", "yaml"],
    ],
    ids=" ".join,
)
def test_c85_what_no_list_can_be_narrowed_to_is_wrong_usage(run, home, arguments):
    one_line(run("list", *arguments), 2)
    assert not home.exists()


def test_c85_limits_of_zero_and_beyond_the_end(run, talk):
    assert listed(run("list", "--limit", "0", "--format", "json")) == []
    assert listed(run("list", "--limit", str(10**9), "--format", "json")) == [talk]
    assert listed(run("list", "--after", talk, "--format", "json")) == []
    for name, option in (("show", "--last"), ("tail", "-n")):
        one_line(run(name, talk, option, "-1"), 2)
        one_line(run(name, talk, option, "ten"), 2)
        assert ok(run(name, talk, option, "0", "--format", "jsonl")) == ""
        assert len(ok(run(name, talk, option, str(10**9), "--format", "jsonl")).splitlines()) == 5


def test_where_there_is_no_session_looking_says_how_to_make_one_and_makes_nothing(run, home):
    done = run("list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "session create" in done.stderr
    assert ok(run("list", "--format", "json")) == "[]\n"
    assert ok(run("list", "--format", "jsonl")) == ""
    assert "session create" in one_line(run("show", "last"), 3)
    assert "session create" in run("stats").stderr
    assert not home.exists()


# --- show and tail --------------------------------------------------------------------------------------


def test_show_tells_all_that_is_known_safe_for_a_terminal(run, talk):
    shown = ok(run("show", talk))
    for part in (
        f"session id: {talk}",
        "actor name: team/bot",
        "title: Sea\\x1b[31m",
        "token usage: 11 in, 7 out, 0.25 dollars or more",
        f"linked plan ids: {PLAN}",
        "tags: a, b",
        'metadata: {"k":1}',
        "UTC] user: Where to?\\x07",
        "UTC] assistant (planner): [calls weather]",
        "UTC] tool: sunny",
        "UTC] assistant (planner): To the sea. [image]",
        "UTC] assistant: Or [interrupted]",
    ):
        assert part in shown, shown
    assert "\x1b" not in shown
    assert "automation level" not in shown
    assert "user" not in ok(run("show", talk, "--last", "2"))


def test_show_as_json_is_one_document_with_everything(run, talk, store):
    document = checked(json.loads(ok(run("show", talk, "--format", "json"))), "show")
    assert document["title"] == "Sea\x1b[31m"
    assert document["messages"] == [message.as_dict() for message in store.messages(talk)]
    assert document["messages"][1]["tool_calls"] == [{"id": "c1", "name": "weather"}]
    assert document["messages"][3]["parts"] == ["To the sea.", {"type": "image_url"}]
    lines = ok(run("show", talk, "--last", "2", "--format", "jsonl")).splitlines()
    assert [checked(json.loads(line), "message")["sequence"] for line in lines] == [3, 4]


def test_tail_shows_the_last_messages_only(run, talk, store):
    store.append_all(talk, [MessageDraft("user", f"m{number}") for number in range(20)])
    assert [line.rpartition(" ")[2] for line in ok(run("tail", talk)).splitlines()] == [f"m{n}" for n in range(10, 20)]
    assert len(ok(run("tail", talk, "-n", "3")).splitlines()) == 3
    messages = checked(json.loads(ok(run("tail", "last", "-n", "2", "--format", "json"))), "tail")
    assert [message["content"] for message in messages] == ["m18", "m19"]
    assert "jsonl" in one_line(run("tail", talk, "-f", "--format", "json"), 2)


@pytest.fixture
def following(home):
    """Starts ``session tail --follow``, and ends it."""
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [*COMMAND, "session", "tail", "--follow", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(home),
            text=True,
        )
        # What never comes must not be waited for for ever.
        started.append((process, threading.Timer(60, process.kill)))
        started[-1][1].start()
        return process

    yield start
    for process, timer in started:
        timer.cancel()
        process.kill()
        process.communicate()


def test_tail_follows_what_another_process_writes_until_it_is_interrupted(talk, store, following):
    process = following(talk, "-n", "1", "--format", "jsonl")
    assert json.loads(process.stdout.readline())["sequence"] == 4
    for number in range(5, 8):
        store.append(talk, "user", f"new {number}")
        assert json.loads(process.stdout.readline())["content"] == f"new {number}"
    store.append_all(talk, [MessageDraft("user", f"m{number}") for number in range(2500)])
    assert [json.loads(process.stdout.readline())["content"] for _ in range(2500)] == [f"m{n}" for n in range(2500)]
    process.send_signal(2)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err.strip()) == (130, "interrupted")


def test_tail_of_a_session_that_is_deleted_meanwhile_ends_with_a_line(talk, store, following):
    process = following("last", "-n", "1", "--format", "jsonl")
    assert json.loads(process.stdout.readline())["sequence"] == 4
    store.delete(talk)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (3, "", f"error: there is no session {talk}\n")


def test_tail_ends_quietly_when_its_reader_has_gone(talk, store, following):
    process = following(talk, "-n", "1")
    process.stdout.readline()
    process.stdout.close()
    store.append(talk, "user", "x")
    assert process.wait(timeout=30) == 0
    assert process.stderr.read() == ""
    process.stdout = None


# --- changing -------------------------------------------------------------------------------------------


def test_create_prints_the_id_of_a_session_with_what_was_given(run, store):
    session_id = ok(
        run(
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
    assert ok(run("create")).strip() == store.list(limit=1)[0].session_id


@pytest.mark.parametrize(
    "arguments",
    [["--actor", "x"], ["--namespace", ""], ["--title", " "], ["--level", "high"], ["--tag", ""]],
    ids=" ".join,
)
def test_create_refuses_what_no_session_can_have(run, home, arguments):
    one_line(run("create", *arguments), 2)
    assert not home.exists()


def test_rename_gives_a_title(run, talk, store):
    assert "'New'" in run("rename", talk, "New").stderr
    assert store.summary(talk).title == "New"
    one_line(run("rename", talk, ""), 2)
    assert store.summary(talk).title == "New"


def test_tag_adds_removes_and_prints(run, talk, store):
    assert ok(run("tag", talk, "--add", "c", "--add", "d", "--remove", "a", "--remove", "z")) == "b\nc\nd\n"
    assert store.summary(talk).tags == ["b", "c", "d"]
    before = store.summary(talk)
    assert ok(run("tag", talk)) == "b\nc\nd\n"
    assert store.summary(talk) == before
    one_line(run("tag", talk, "--add", " "), 2)


def test_link_plan_links_once(run, talk, store):
    ok(run("link-plan", talk, PLAN.lower(), "--state", "done"))
    (plan,) = store.summary(talk).linked_plans
    assert (plan.plan_id, plan.phase, plan.state) == (PLAN, "draft", "done")
    one_line(run("link-plan", talk, "x"), 2)
    one_line(run("link-plan", talk, PLAN, "--phase", " "), 2)


def test_c89_ids_are_the_same_in_either_case(run, talk, store):
    assert listed(run("list", "--after", talk.lower(), "--format", "json")) == []
    assert f"session id: {talk}" in ok(run("show", talk.lower()))
    assert f"session id: {talk}" in ok(run("show", talk[:20].lower()))
    ok(run("rename", talk.lower(), "x"))
    ok(run("delete", talk.lower(), "--yes"))
    assert store.list() == []


def test_delete_removes_several_or_none(run, store):
    made = [store.create().session_id for _ in range(3)]
    assert "no session" in one_line(run("delete", made[0], new_ulid(), "--yes"), 3)
    assert len(store.list()) == 3
    done = run("delete", made[0], made[1].lower(), made[0], "--yes")
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 2
    assert [summary.session_id for summary in store.list()] == [made[2]]


def test_delete_needs_yes_without_a_terminal(run, talk, store):
    line = one_line(run("delete", talk), 2)
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


# --- ids ------------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("name", WITH_ID)
def test_an_unknown_an_ambiguous_and_a_malformed_id_are_told_apart(run, store, name, tmp_path):
    one, two = store.create().session_id, store.create().session_id
    before = store.list()
    unknown = new_ulid()
    assert unknown in one_line(run(name, unknown, *WITH_ID[name]), 3)
    assert "7ZZ" in one_line(run(name, "7zz", *WITH_ID[name]), 3)
    line = one_line(run(name, one[:5], *WITH_ID[name]), 4)
    assert one in line
    assert two in line
    for malformed in ("notavalidulidnotavalidulid", one[:-1] + "u", f" {one}", f"{one}0", "\uff10\uff11", ""):
        assert "not a valid id" in one_line(run(name, malformed, *WITH_ID[name]), 2)
    assert store.list() == before
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_c88_a_malformed_id_of_a_plan_is_refused(run, talk, store):
    before = store.summary(talk)
    for malformed in ("notavalidulidnotavalidulid", PLAN[:-1], f"{PLAN} ", "last"):
        assert "not a valid id" in one_line(run("link-plan", talk, malformed), 2)
    assert store.summary(talk) == before


# --- stats ----------------------------------------------------------------------------------------------


def test_stats_as_json_have_everything(run, talk, store):
    store.create()
    document = checked(json.loads(ok(run("stats", "--format", "json"))), "stats")
    assert document["total"]["sessions"] == 2
    assert document["total"]["input_tokens"] == 11
    assert (document["total"]["estimated_cost"], document["total"]["cost_complete"]) == (0.25, False)
    assert [row["actor"] for row in document["actor"]] == ["team/bot", None]
    assert [row["llm"] for row in document["llm"]] == ["x:1", "x:2"]
    lines = [json.loads(line) for line in ok(run("stats", "--format", "jsonl")).splitlines()]
    assert lines == [{"by": by, **row} for by in ("day", "actor", "llm") for row in document[by]]


def on_a_terminal(home, *arguments):
    """What a command shows on a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "session", *arguments], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment(home)
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:  # the end, on Linux
        pass
    os.close(ours)
    assert process.wait(60) == 0, shown
    return shown.decode()


def test_stats_have_bars_on_a_terminal_only(run, talk, home):
    table = ok(run("stats"))
    assert re.search(r"^team/bot +1 +5 +2 +11 +7 +0\.2500 or more$", table, re.MULTILINE), table
    assert "█" not in table
    shown = on_a_terminal(home, "stats")
    assert re.search(r"^x:1 .* █{20}\r$", shown, re.MULTILINE), shown
    assert re.search(r"^x:2 .* █{4}\r$", shown, re.MULTILINE), shown


# --- every command --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(run, name, home):
    shown = ok(run(name, "--help"))
    assert f"cleveragents session {name} " in shown.partition("Example:")[2] + " "
    assert not home.exists()


def test_the_group_tells_of_every_command(run):
    shown = ok(run("--help"))
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", shown, re.MULTILINE)


@pytest.mark.parametrize("url", ["mysql://h/d", "sqlite://", "postgresql+psycopg://127.0.0.1:1/d", "nonsense"])
def test_a_database_that_cannot_be_used_is_one_line(run, url):
    code = 1 if url.startswith("postgresql") else 2
    line = one_line(run("list", env={"CLEVERAGENTS_DATABASE_URL": url}), code)
    assert "hush" not in line


def test_c104_a_reader_that_has_seen_enough_ends_the_output_quietly(store, talk, home, tmp_path):
    store.append_all(talk, [MessageDraft("user", "x" * 100)] * 5000)
    shell = " ".join(COMMAND)
    for pipeline in (
        "session list | true",
        "session list --format json | true",
        f"session show {talk} | head -1",
        f"session show {talk} --format jsonl | head -1",
        "session show last --format json | head -c 1",
        "session tail last -n 5000 | head -1",
        "session export last --output - | head -c 1",
        "session stats | true",
        "session tag last | true",
        f"session verify {talk} | true",
        "session create | true",
    ):
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {shell} {pipeline}"],
            capture_output=True,
            text=True,
            env=environment(home, {"PYTHONUNBUFFERED": "1"}),
            cwd=tmp_path,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), pipeline


C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_c106_text_is_the_same_in_a_locale_that_is_not_utf_8(run, store):
    session_id = ok(run("create", "--title", "é 🎉", "--tag", "ж", env=C_LOCALE)).strip()
    assert store.summary(session_id).title == "é 🎉"
    assert store.summary(session_id).tags == ["ж"]
    assert ok(run("list", env=C_LOCALE)).isascii()
    (found,) = json.loads(ok(run("list", "--tag", "ж", "--format", "json", env=C_LOCALE)))
    assert found["title"] == "é 🎉"
    ok(run("rename", session_id, "ä", env=C_LOCALE))
    assert store.summary(session_id).title == "ä"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_ids(store, home, shell):
    one, two = store.create("a/b", title="Sea\x1b").session_id, store.create().session_id
    shared = next(one[:length] for length in range(25, 0, -1) if one[:length] == two[:length])

    def completed(*words):
        env = {
            "_CLEVERAGENTS_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": " ".join(["cleveragents", *words]),
            "COMP_CWORD": words[-1] if shell == "fish" else str(len(words) - (not words[-1])),
        }
        done = command(home=home, env=env)
        assert (done.returncode, done.stderr) == (0, "")
        assert "\x1b" not in done.stdout
        return done.stdout

    for words in (
        ["session", "show"],
        ["session", "export"],
        ["session", "list", "--after"],
        ["run", "x", "--session"],
    ):
        assert one in completed(*words, shared)
        assert two in completed(*words, shared)
    only = completed("session", "show", one[: len(shared) + 1])
    assert one in only
    assert two not in only
    assert one.lower() in completed("session", "delete", one[: len(shared) + 1].lower())
    assert shell == "bash" or "Sea" in only
    assert one not in completed("session", "show", "!")
    assert "link-plan" in completed("session", "li")


def test_completion_without_a_database_is_silent(home):
    for url in ("", "nonsense"):
        env = {
            "_CLEVERAGENTS_COMPLETE": "bash_complete",
            "COMP_WORDS": "cleveragents session show ",
            "COMP_CWORD": "3",
            "CLEVERAGENTS_DATABASE_URL": url,
        }
        done = command(home=home, env=env)
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
    assert not home.exists()
