"""``run`` on sessions, as a user has it: processes that go on where another one stopped."""

import contextlib
import json
import signal
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from cleveragents import open_sessions
from cleveragents.disk.files import file_digest
from support.command import COMMAND, command, environment, one_line
from support.postgres import PostgresServer
from support.scripted_llm import calls, fails, hangs, says
from support.strict import SYSTEM, faults, strictly

ULID_LENGTH = 26


@pytest.fixture
def config(tmp_path, scripted_llm):
    path = tmp_path / "assistant.yaml"
    path.write_text(
        f"""
name: local/scripted
agents:
  assistant:
    type: llm
    llm: openai:any
    base_url: {scripted_llm.url}
    system_prompt: {SYSTEM}
    tools: [count]
  count: {{type: tool, code: result = len(message)}}
""",
        encoding="utf-8",
    )
    return path


def database(home):
    return f"sqlite:///{home / 'cleveragents.db'}"


def said(url, session_id):
    with open_sessions(url) as sessions:
        return [(str(message.role), message.content) for message in sessions.messages(session_id)]


def begin(home, config, scripted_llm, **more):
    """A new session with one turn, and its id."""
    scripted_llm.script(says("Bonjour."))
    done = command("run", config, "Hello", "--new-session", home=home, **more)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Bonjour.\n"
    return done.stderr.removeprefix("session: ").strip()


def unkept(done, code):
    """The one line on stderr of a run that has shown its answer, and failed to keep it."""
    assert (done.returncode, done.stdout) == (code, "Paris.\n"), done.stderr
    (line,) = [line for line in done.stderr.splitlines() if not line.startswith("session: ")]
    return line


# --- which session -----------------------------------------------------------------------------------------


def test_a_new_session_is_begun_and_gone_on_with_in_every_way(home, config, scripted_llm):
    session_id = begin(home, config, scripted_llm)
    assert len(session_id) == ULID_LENGTH
    for way in (
        ["--continue"],
        ["--session", "last"],
        ["--session", session_id[:20].lower()],
        ["--session", session_id],
    ):
        scripted_llm.script(strictly(says("Oui.")))
        done = command("run", config, "More", *way, home=home)
        assert (done.returncode, done.stdout) == (0, "Oui.\n")
        going_on = f"session: {session_id} (2 messages, last used just now)\n"
        assert done.stderr == (going_on if way == ["--continue"] else "")
    assert (
        said(database(home), session_id)
        == [("user", "Hello"), ("assistant", "Bonjour.")]
        + [
            ("user", "More"),
            ("assistant", "Oui."),
        ]
        * 4
    )


def test_the_session_remembers_its_actor_and_its_configuration_file(home, config, scripted_llm):
    session_id = begin(home, config.name, scripted_llm, cwd=config.parent)
    with open_sessions(database(home)) as sessions:
        summary = sessions.summary(session_id)
    assert summary.actor_name == "local/scripted"
    assert summary.metadata == {"cleveragents": {"config": str(config), "config_digest": file_digest(config)}}


def test_continue_takes_the_newest_session_that_was_run_with_the_file(home, config, scripted_llm):
    mine = begin(home, config, scripted_llm)
    with open_sessions(database(home)) as sessions:
        sessions.append(sessions.create("local/scripted").session_id, "user", "newer")
    scripted_llm.script(says("Oui."))
    assert command("run", config, "More", "--continue", home=home).returncode == 0
    assert len(said(database(home), mine)) == 4


def test_what_is_not_there_is_said_in_one_line(home, config):
    assert f"no session was last run with {config}" in one_line(command("run", config, "x", "--continue", home=home), 3)
    one_line(command("run", config, "x", "--session", "last", home=home), 3)
    unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    assert unknown in one_line(command("run", config, "x", "--session", unknown, home=home), 3)
    one_line(command("run", config, "x", "--session", "no id!", home=home), 2)
    one_line(command("run", config, "x", "--session", "", home=home), 2)
    assert not home.exists()


@pytest.mark.parametrize(
    "options",
    [
        ["--context", "talk", "--continue"],
        ["--session", "last", "--new-session"],
        ["--continue", "--new-session"],
        ["--batch", "-", "--new-session"],
    ],
    ids=" ".join,
)
def test_a_run_is_on_one_conversation(home, config, options):
    assert "does not go with" in one_line(command("run", config, "x", *options, home=home), 2)
    assert not home.exists()


def test_json_names_the_session_and_the_cost(home, config, scripted_llm):
    scripted_llm.script(says("Oui."), says("Oui."))
    done = command("run", config, "Hello", "--new-session", "--output-format", "json", home=home)
    document = json.loads(done.stdout)
    session_id = document["session"]
    assert done.stderr == f"session: {session_id}\n"
    assert document["usage"]["cost"] is None
    lines = command(
        "run", config, "Hello", "--continue", "--output-format", "stream-json", "--llm", "openai:gpt-5-mini", home=home
    ).stdout.splitlines()
    assert [json.loads(line).get("session") for line in (lines[0], lines[-1])] == [session_id, session_id]
    assert json.loads(lines[-1])["usage"]["cost"] > 0


def test_c53_usage_is_printed_with_its_cost_or_that_it_is_unknown(home, config, scripted_llm):
    scripted_llm.script(says("Oui."), says("Oui."))
    done = command("run", config, "Hello", "--usage", home=home)
    assert done.stderr == "usage: 10 tokens in, 5 out, cost unknown\n"
    done = command("run", config, "Hello", "--usage", "--llm", "openai:gpt-5-mini", home=home)
    assert done.stderr.startswith("usage: 10 tokens in, 5 out, cost $0.0000")


# --- a real conversation -----------------------------------------------------------------------------------


def test_a_conversation_with_the_local_llm_over_three_processes(home, tmp_path):
    config = tmp_path / "memory.yaml"
    config.write_text(
        """
agents:
  assistant:
    type: llm
    llm: local
    system_prompt: You are a helpful assistant.
    temperature: 0
    max_tokens: 60
""",
        encoding="utf-8",
    )
    question = "Which number did I ask you to remember?"
    assert "42" not in command("run", config, question, home=home).stdout
    first = command("run", config, "Remember the number 42.", "--new-session", home=home)
    assert first.returncode == 0, first.stderr
    assert "42" in command("run", config, question, "--continue", home=home).stdout
    third = command("run", config, "What number was it?", "--session", "last", "--usage", home=home)
    assert "42" in third.stdout
    assert third.stderr.endswith("cost $0\n")
    messages = said(database(home), first.stderr.split()[1])
    assert [role for role, _ in messages] == ["user", "assistant"] * 3


# --- interruption, deletion, failing databases -------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_c50_a_run_that_is_ended_keeps_the_question_and_what_came(number, home, config, scripted_llm):
    session_id = begin(home, config, scripted_llm)
    heard: list[subprocess.Popen[bytes]] = []

    def end(exchange):
        heard[0].send_signal(number)
        hangs(exchange)

    scripted_llm.script(says(["Un, ", "deux"], then=end))
    child = subprocess.Popen(
        [*COMMAND, "run", str(config), "Count.", "--continue", "--output-format", "stream-json"],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    heard.append(child)
    _, stderr = child.communicate(timeout=30)
    assert (child.returncode, stderr.split()[-1]) == (130, b"interrupted")
    stored = said(database(home), session_id)
    assert stored[:3] == [("user", "Hello"), ("assistant", "Bonjour."), ("user", "Count.")]
    # How much had arrived by then is up to the network.
    assert all("Un, deux".startswith(content) for _, content in stored[3:])
    scripted_llm.script(strictly(says("Trois.")))
    assert command("run", config, "go on", "--continue", home=home).returncode == 0


def test_c82_a_session_deleted_during_a_run_is_said_and_does_not_come_back(home, config, scripted_llm):
    session_id = begin(home, config, scripted_llm)

    def delete(exchange):
        with open_sessions(database(home)) as sessions:
            sessions.delete(session_id)
        says("Paris.")(exchange)

    scripted_llm.script(delete)
    done = command("run", config, "Capital?", "--continue", home=home)
    assert session_id in unkept(done, 3)
    with open_sessions(database(home)) as sessions:
        assert sessions.list() == []


def test_c10_a_save_waits_for_another_writer_and_says_when_that_takes_too_long(home, config, scripted_llm):
    session_id = begin(home, config, scripted_llm)
    other = sqlite3.connect(home / "cleveragents.db", isolation_level=None, check_same_thread=False)
    with contextlib.closing(other):

        def lock(exchange):
            other.execute("BEGIN IMMEDIATE")
            says("Paris.")(exchange)

        scripted_llm.script(lock)
        url = f"{database(home)}?busy_timeout=0.5"
        done = command("run", config, "q1", "--session", session_id, home=home, env={"CLEVERAGENTS_DATABASE_URL": url})
        other.rollback()
        assert "in use" in unkept(done, 6)
        scripted_llm.script(lock)
        child = subprocess.Popen(
            [*COMMAND, "run", str(config), "q2", "--session", session_id, "--output-format", "stream-json"],
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert child.stdout is not None
        shown = b""
        while b"Paris." not in shown:
            shown = child.stdout.readline()
        other.rollback()
        child.communicate(timeout=30)
    assert child.returncode == 0
    assert said(database(home), session_id)[2:] == [("user", "q1"), ("user", "q2"), ("assistant", "Paris.")]


# --- many hosts on one database ----------------------------------------------------------------------------


def test_c11_two_hosts_on_one_database_take_turns_and_collide(tmp_path, config, scripted_llm, postgres):
    url = postgres.new_database()
    hosts = [tmp_path / "one", tmp_path / "two"]
    shared = {"CLEVERAGENTS_DATABASE_URL": url}
    session_id = begin(hosts[0], config, scripted_llm, env=shared)
    found = []

    def answer(exchange):
        messages = exchange.request["messages"]
        found.extend(faults(messages))
        (says("Trois.") if messages[-1]["role"] == "tool" else calls("count", {"message": "abc"}))(exchange)

    scripted_llm.always(answer)
    for number in range(4):
        done = command("run", config, f"turn {number}", "--session", "last", home=hosts[number % 2], env=shared)
        assert (done.returncode, done.stdout) == (0, "Trois.\n"), done.stderr
    questions = [f"{host.name} {number}" for number in range(3) for host in hosts]

    def ask(question):
        host = tmp_path / question.partition(" ")[0]
        return command("run", config, question, "--session", session_id, "--wait", "100", home=host, env=shared)

    with ThreadPoolExecutor(6) as pool:
        asked = [*pool.map(ask, questions)]
    assert [done.returncode for done in asked] == [0] * 6
    assert {done.stderr for done in asked} <= {"", f"waiting for another run on session {session_id}\n"}
    stored = said(url, session_id)[2:]
    assert [role for role, _ in stored] == ["user", "assistant", "tool", "assistant"] * 10
    prompts = [content for role, content in stored if role == "user"]
    assert prompts[:4] == [f"turn {number}" for number in range(4)]
    assert sorted(prompts[4:]) == sorted(questions)
    assert found == []
    with open_sessions(url) as sessions, sessions.turn(session_id):
        done = command("run", config, "no", "--session", session_id, "--wait", "0", home=hosts[1], env=shared)
    assert session_id in one_line(done, 6)
    assert len(said(url, session_id)) == 42


def test_a_database_server_that_goes_away_in_the_middle_of_a_turn(tmp_path, home, config, scripted_llm):
    server = PostgresServer()
    try:
        url = server.new_database()
        shared = {"CLEVERAGENTS_DATABASE_URL": url}
        session_id = begin(home, config, scripted_llm, env=shared)

        def after(change):
            def entry(exchange):
                change()
                says("Paris.")(exchange)

            return entry

        # Away and back: what comes of the turn is stored on a new connection.
        scripted_llm.script(after(server.restart))
        done = command("run", config, "q1", "--session", session_id, home=home, env=shared)
        assert (done.returncode, done.stdout, done.stderr) == (0, "Paris.\n", "")
        # Away: one line, and the question is there.
        scripted_llm.script(after(server.halt))
        done = command("run", config, "q2", "--session", session_id, home=home, env=shared)
        assert "cannot use the database" in unkept(done, 1)
        server.restart()
        scripted_llm.script(strictly(says("Rome.")))
        assert command("run", config, "q3", "--continue", home=home, env=shared).returncode == 0
        assert said(url, session_id)[2:] == [
            ("user", "q1"),
            ("assistant", "Paris."),
            ("user", "q2"),
            ("user", "q3"),
            ("assistant", "Rome."),
        ]
    finally:
        server.stop()


def test_an_llm_that_fails_leaves_the_question_and_one_line(home, config, scripted_llm):
    session_id = begin(home, config, scripted_llm)
    scripted_llm.script(fails(400, "no"))
    assert "agent assistant" in one_line(command("run", config, "q", "--session", session_id, home=home), 1)
    assert said(database(home), session_id)[2:] == [("user", "q")]
