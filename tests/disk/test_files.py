"""Files that are none, in every place where one is opened: each is refused with a line, and nothing waits or spins."""

import os
import signal
from pathlib import Path

import pytest

from cleveragents import AppConfig, CleverAgentsApp, ContextManager, load_config, open_sessions
from cleveragents.agents.llm import local
from cleveragents.cli.run.batch import run_batch
from cleveragents.disk import locks
from cleveragents.disk.files import append_file, make_folder, open_file, read_file
from cleveragents.errors import CleverAgentsError, StorageError


@pytest.fixture(autouse=True)
def ends():
    """What waits or spins for ever fails, and does not hold up the tests after it."""

    def late(*_):
        pytest.fail("it did not end")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def nowhere(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "gone" / "further")
    return link


@pytest.fixture
def pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def test_a_link_that_leads_nowhere_is_no_lock_and_no_file(nowhere):
    for follow in (True, False):
        with pytest.raises(OSError, match="link"):
            open_file(nowhere, os.O_RDWR, create=True, follow=follow)
        with pytest.raises(OSError, match="link"):
            locks.acquire(nowhere, 1, follow=follow)
    with pytest.raises(OSError, match="link"):
        append_file(nowhere, [b"x"])
    assert nowhere.is_symlink()


def test_a_link_in_a_folder_of_ours_is_not_followed(tmp_path):
    (tmp_path / "target").write_bytes(b"kept")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    for use in (lambda path: append_file(path, [b"x"]), lambda path: locks.acquire(path, 0)):
        with pytest.raises(OSError, match="a symbolic link, which is not followed here"):
            use(tmp_path / "link")
    assert (tmp_path / "target").read_bytes() == b"kept"
    assert read_file(tmp_path / "link") == b"kept"


def test_a_lock_of_a_context_that_is_a_link_is_refused(tmp_path):
    context = ContextManager("talk", tmp_path)
    for target in (tmp_path / "gone", tmp_path / "other"):
        context.add_message("user", "x")
        lock = tmp_path / ".locks" / "talk~"
        lock.unlink()
        lock.symlink_to(target)
        with pytest.raises(StorageError, match=rf"cannot lock {lock}: a symbolic link"):
            context.add_message("user", "x")
        lock.unlink()
        assert not target.exists()


def test_a_home_that_leads_nowhere_is_refused(nowhere):
    with pytest.raises(StorageError, match=f"{nowhere} is a link that leads nowhere"):
        ContextManager("talk", nowhere / "contexts")


def test_a_parent_that_takes_no_folders_is_refused():
    with pytest.raises(OSError, match=r"No such file|not permitted|denied"):
        make_folder(Path("/proc/no/such/folder"))
    with pytest.raises(OSError, match=r"No such file|not permitted|denied"):
        locks.acquire(Path("/proc/lock"), 5)


def test_a_file_in_place_of_a_parent_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=f"{tmp_path / 'file'} is not a folder|Not a directory"):
        make_folder(tmp_path / "file" / "a" / "b")


def test_a_database_that_leads_nowhere_or_is_no_file_is_refused(nowhere, pipe):
    for path, reason in ((nowhere, "a link that leads nowhere"), (pipe, "not a regular file")):
        with open_sessions(f"sqlite:///{path}") as sessions, pytest.raises(CleverAgentsError, match=reason):
            sessions.create()


def test_pipes_and_devices_are_no_configuration_import_batch_or_weights(pipe, tmp_path):
    app = CleverAgentsApp(AppConfig.model_validate({"agents": {"a": {"type": "tool", "code": "result = 1"}}}))
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(CleverAgentsError, match="not a regular file"):
            load_config(path)
        with pytest.raises(CleverAgentsError, match="not a regular file"):
            ContextManager.import_from(path, "talk", tmp_path)
        with pytest.raises(CleverAgentsError, match="not a regular file"):
            run_batch(app, path, concurrency=1, output=None, usage=False, verbose=False)
        with pytest.raises(Exception, match=r"not a regular file|not installed"):
            local.begin("a", f"gguf:{path}").result(5)
