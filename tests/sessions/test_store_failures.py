"""A SQLite file that is damaged, full, forbidden, gone or in use: one clear error, and nothing half written."""

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cleveragents import MessageDraft, errors, open_sessions
from cleveragents.sessions.open import open_database
from cleveragents.sessions.sql import sqlite
from support.sessions import one_line


@pytest.fixture
def path(tmp_path):
    return tmp_path / "store" / "sessions.db"


@pytest.fixture
def url(path):
    return f"sqlite:///{path}"


@pytest.fixture
def session_id(url):
    """The only session of a SQLite database, with 200 messages."""
    with open_sessions(url) as sessions:
        session_id = sessions.create().session_id
        sessions.append_all(session_id, [MessageDraft("user", f"message {number} " * 20) for number in range(200)])
    return session_id


class TestDamage:
    def test_c13_a_damaged_database_is_named_and_left_as_it_is(self, path, url, session_id):
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(os.urandom(4096))
        before = path.read_bytes()
        with open_sessions(url) as sessions:
            for call in (sessions.list, lambda: sessions.get(session_id), sessions.create):
                with pytest.raises(errors.SessionDamagedError) as failure:
                    call()
                one_line(failure, path, "damaged", "left as it is")
        assert path.read_bytes() == before

    @pytest.mark.parametrize(
        "content", [b"\x00" * 8192, b"not a database, " * 600, b"SQLite format 3\x00" + b"\xff" * 9000]
    )
    def test_c13_a_file_that_is_no_database_is_named_and_left_as_it_is(self, path, url, content):
        path.parent.mkdir()
        path.write_bytes(content)
        with open_sessions(url) as sessions:
            for call in (sessions.list, sessions.create):
                with pytest.raises(errors.SessionServiceError) as failure:
                    call()
                one_line(failure, path)
        assert path.read_bytes() == content

    def test_an_empty_file_becomes_a_database(self, path, url):
        path.parent.mkdir()
        path.touch()
        with open_sessions(url) as sessions:
            assert sessions.list() == []
            sessions.create()
            assert len(sessions.list()) == 1

    def test_c13_a_database_works_without_wal_and_wal_can_be_turned_off(self, path, url, session_id):
        with open_sessions(f"{url}?journal_mode=delete") as sessions:
            sessions.append(session_id, "user", "x")
            assert sessions.count(session_id) == 201
            assert not path.with_name("sessions.db-wal").exists()
        database = open_database(f"{url}?journal_mode=delete")
        assert database.status().details["journal_mode"] == "delete"
        database.close()

    def test_an_affected_library_keeps_a_rollback_journal(self, url, session_id, monkeypatch):
        monkeypatch.setattr(sqlite, "SAFE_WAL", (99, 0, 0))
        with open_sessions(url) as sessions:
            sessions.append(session_id, "user", "x")
        database = open_database(url)
        database.upgrade()
        assert database.status().details["journal_mode"] == "delete"
        database.close()

    def test_the_standard_library_serves_where_there_is_no_wheel(self, url):
        program = (
            "import sys; sys.modules['pysqlite3'] = None\n"
            "from cleveragents import open_sessions\n"
            "from cleveragents.sessions.open import open_database\n"
            "with open_sessions(sys.argv[1]) as sessions:\n"
            "    session_id = sessions.create(tags=['a']).session_id\n"
            "    for text in 'abc': sessions.append(session_id, 'user', text)\n"
            "    sessions.import_(sessions.export(session_id))\n"
            "    print(len(sessions.list(tag='a')), len(sessions.last_messages(session_id, 2)))\n"
            "print(open_database(sys.argv[1]).status().details['library'].split()[0])\n"
        )
        done = subprocess.run([sys.executable, "-c", program, url], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["2", "2", "sqlite3"]

    def test_a_library_that_is_too_old_is_refused(self, url, monkeypatch):
        monkeypatch.setattr(sqlite, "OLDEST", (99, 0, 0))
        with open_sessions(url) as sessions, pytest.raises(errors.SessionStorageError, match=r"SQLite 99\.0\.0"):
            sessions.create()


class TestDisk:
    def test_a_directory_is_no_database(self, path, url):
        path.mkdir(parents=True)
        with open_sessions(url) as sessions:
            for call in (sessions.list, sessions.create):
                with pytest.raises(errors.SessionStorageError) as failure:
                    call()
                one_line(failure, path)
        assert list(path.iterdir()) == []

    def test_a_folder_below_a_file_is_no_place(self, tmp_path):
        (tmp_path / "file").touch()
        with open_sessions(f"sqlite:///{tmp_path}/file/sessions.db") as sessions:
            for call in (sessions.list, sessions.create):
                with pytest.raises(errors.SessionStorageError) as failure:
                    call()
                one_line(failure, tmp_path / "file")

    def test_a_database_behind_a_link_is_the_same_database(self, path, url, session_id, tmp_path):
        link = tmp_path / "link.db"
        link.symlink_to(path)
        with open_sessions(url) as here, open_sessions(f"sqlite:///{link}") as there:
            assert there.append(session_id, "user", "x").sequence == 200
            assert here.count(session_id) == 201
            with here.turn(session_id), pytest.raises(errors.SessionBusyError), there.turn(session_id, wait=0):
                pass
        assert link.is_symlink()

    def test_a_full_disk_loses_only_what_was_not_acknowledged(self, path, url, session_id):
        program = (
            "import resource, signal, sys; from cleveragents import errors, open_sessions\n"
            "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
            "with open_sessions(sys.argv[1]) as sessions:\n"
            "    sessions.count(sys.argv[2])\n"
            "    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))\n"
            "    try:\n"
            "        while True: print(sessions.append(sys.argv[2], 'user', 'x' * 5000).sequence, flush=True)\n"
            "    except errors.SessionStorageError as error: print(error)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, url, session_id], capture_output=True, text=True, check=True
        )
        *acknowledged, error = done.stdout.splitlines()
        assert str(path) in error
        assert len(acknowledged) > 3
        with open_sessions(url) as sessions:
            assert sessions.count(session_id) == 200 + len(acknowledged)
            assert [message.sequence for message in sessions.messages(session_id)] == list(
                range(200 + len(acknowledged))
            )
            sessions.append(session_id, "user", "room again")

    def test_c76_everything_is_for_its_owner_only(self, path, url, tmp_path):
        old = os.umask(0)
        try:
            with open_sessions(url) as sessions:
                session_id = sessions.create().session_id
                with sessions.turn(session_id):
                    sessions.append(session_id, "user", "x")
                    database = open_database(url)
                    database.backup(tmp_path / "backup.db")
                    database.close()
                    found = {each: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.rglob("*")}
        finally:
            os.umask(old)
        assert {each.name for each in found} >= {"sessions.db", "sessions.db-wal", "sessions.db-shm", "backup.db"}
        for each, mode in found.items():
            assert mode == (0o700 if each.is_dir() else 0o600), each

    def test_c76_a_mode_that_the_user_chose_stays(self, path, url):
        path.parent.mkdir(mode=0o755)
        path.touch(mode=0o640)
        path.chmod(0o640)
        with open_sessions(url) as sessions:
            sessions.create()
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755

    @pytest.mark.parametrize(
        ("folder_mode", "file_mode", "reads"), [(0o500, 0o400, True), (0o700, 0o000, False), (0o000, 0o600, False)]
    )
    def test_what_may_not_be_written_or_read_is_named(self, folder_mode, file_mode, reads):
        with tempfile.TemporaryDirectory(prefix="readonly") as name:
            folder = Path(name) / "store"
            path = folder / "sessions.db"
            with open_sessions(f"sqlite:///{path}?journal_mode=delete") as sessions:
                session_id = sessions.create().session_id
            if os.geteuid() == 0:
                for each in (folder.parent, folder, path):
                    os.chown(each, 65534, 65534)
            path.chmod(file_mode)
            folder.chmod(folder_mode)
            # What an unprivileged user may not be able to read is imported first.
            program = (
                "import os, sys; from cleveragents import errors, open_sessions\n"
                "open_sessions(f'sqlite:///{sys.argv[3]}/warm.db').create()\n"
                "if os.geteuid() == 0: os.setgroups([]), os.setgid(65534), os.setuid(65534)\n"
                "with open_sessions(sys.argv[1]) as sessions:\n"
                "    for call, *rest in (sessions.get,), (sessions.append, 'user', 'x'):\n"
                "        try: call(sys.argv[2], *rest); print('done')\n"
                "        except errors.SessionStorageError as error: print(error)\n"
            )
            done = subprocess.run(
                [sys.executable, "-c", program, f"sqlite:///{path}?journal_mode=delete", session_id, name],
                capture_output=True,
                text=True,
                check=True,
            )
            read, written = done.stdout.splitlines()
            assert (read == "done") == reads
            for line in [written] if reads else [read, written]:
                assert str(path) in line
            folder.chmod(0o700)

    def test_c14_a_database_that_was_removed_is_noticed(self, path, url, session_id):
        with open_sessions(url) as sessions:
            sessions.append(session_id, "user", "x")
            for each in path.parent.glob("sessions.db*"):
                if each.is_file():
                    each.unlink()
            with pytest.raises(errors.SessionStorageError) as failure:
                sessions.append(session_id, "user", "y")
            one_line(failure, path, "removed")
            with pytest.raises(errors.SessionNotFoundError):
                sessions.append(session_id, "user", "y")
            sessions.append(sessions.create().session_id, "user", "a new start")
            assert len(sessions.list()) == 1

    def test_c14_a_database_that_was_replaced_is_used(self, path, url, session_id, tmp_path):
        database = open_database(url)
        database.backup(tmp_path / "backup.db")
        database.close()
        with open_sessions(url) as sessions:
            sessions.append(session_id, "user", "lost with the file")
            for each in path.parent.glob("sessions.db-*"):
                each.unlink()
            (tmp_path / "backup.db").replace(path)
            assert sessions.append(session_id, "user", "x").sequence == 200
            assert sessions.count(session_id) == 201


class TestBusy:
    PROGRAM = (
        "import sys, sqlite3\n"
        "connection = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "connection.execute('BEGIN EXCLUSIVE')\n"
        "print('held', flush=True); sys.stdin.readline(); connection.execute('COMMIT')\n"
    )

    @pytest.fixture
    def held(self, path, session_id):
        """A process that holds the database until a line is written to it."""
        process = subprocess.Popen(
            [sys.executable, "-c", self.PROGRAM, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
            process.kill()

    def test_c10_a_database_that_stays_locked_is_busy(self, url, session_id, held, path):
        with open_sessions(f"{url}?busy_timeout=0.2") as sessions:
            with pytest.raises(errors.SessionBusyError) as failure:
                sessions.append(session_id, "user", "x")
            one_line(failure, path, "0.2 seconds")
            held.communicate("\n")
            assert sessions.append(session_id, "user", "x").sequence == 200

    def test_c10_a_database_that_is_let_go_is_waited_for(self, url, session_id, held):
        program = (
            "import sys; from cleveragents import open_sessions\n"
            "with open_sessions(sys.argv[1]) as sessions:\n"
            "    sessions.count(sys.argv[2]); print('ready', flush=True)\n"
            "    print(sessions.append(sys.argv[2], 'user', 'x').sequence)\n"
        )
        waiting = subprocess.Popen([sys.executable, "-c", program, url, session_id], stdout=subprocess.PIPE, text=True)
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.5)
        held.communicate("\n")
        assert waiting.communicate(timeout=60)[0] == "200\n"

    def test_waiting_can_be_interrupted(self, url, session_id, held):
        program = (
            "import sys; from cleveragents import open_sessions\n"
            "with open_sessions(sys.argv[1]) as sessions:\n"
            "    sessions.count(sys.argv[2]); print('ready', flush=True)\n"
            "    try: sessions.append(sys.argv[2], 'user', 'x')\n"
            "    except KeyboardInterrupt: print('interrupted')\n"
        )
        waiting = subprocess.Popen([sys.executable, "-c", program, url, session_id], stdout=subprocess.PIPE, text=True)
        assert waiting.stdout is not None
        assert waiting.stdout.readline() == "ready\n"
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.3)
        waiting.send_signal(signal.SIGINT)
        assert waiting.communicate(timeout=10)[0] == "interrupted\n"
