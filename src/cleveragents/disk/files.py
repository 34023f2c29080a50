"""Files that a crash leaves whole, in folders only their owner can enter.

Each function raises the OSError that says what failed; ``storage_errors`` around it makes that a line for people.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from cleveragents.errors import MissingFileError, StorageError

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700

_CLOSE_ON_EXEC: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# A named pipe in place of a file must not make an open wait for ever.
_NO_WAIT: int = getattr(os, "O_NONBLOCK", 0)
_MOVE_HINT = "; check its permissions, or set CLEVERAGENTS_HOME to a folder you can write to"
_HINTS = {
    errno.EACCES: _MOVE_HINT,
    errno.EPERM: _MOVE_HINT,
    errno.EROFS: _MOVE_HINT,
    errno.ENOSPC: "; free some space and try again",
    errno.EDQUOT: "; free some space and try again",
}


@contextlib.contextmanager
def storage_errors(path: Path, action: str = "write") -> Iterator[None]:
    """Turn an OSError inside the block into a StorageError of one line: the path, the reason, what to do."""
    try:
        yield
    except OSError as error:
        reason = f"{error.strerror or error}{_HINTS.get(error.errno or 0, '')}"
        missing = action == "read" and isinstance(error, FileNotFoundError)
        kind = MissingFileError if missing else StorageError
        raise kind(f"cannot {action} {path}: {reason}") from error


def make_folder(path: Path) -> None:
    """Make ``path`` and its missing parents, each open to its owner only, whatever the umask."""
    try:
        path.mkdir(mode=PRIVATE_FOLDER)
    except FileExistsError:
        if not path.is_dir():
            raise
    except FileNotFoundError:
        make_folder(path.parent)
        make_folder(path)
    else:
        path.chmod(PRIVATE_FOLDER)
        sync_folder(path.parent)


def open_file(path: Path, flags: int, *, create: bool = False) -> int:
    """A descriptor of the regular file at ``path``, opened with ``flags`` of ``os``, made if missing with ``create``.

    One that is made is open to its owner only. Raises OSError for anything but a regular file, and never waits for one.
    """
    while True:
        try:
            descriptor = os.open(path, flags | _CLOSE_ON_EXEC | _NO_WAIT)
        except FileNotFoundError:
            if not create:
                raise
            try:
                descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL | _CLOSE_ON_EXEC, PRIVATE_FILE)
            except FileExistsError:
                continue  # another process was faster
            path.chmod(PRIVATE_FILE)
            sync_folder(path.parent)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_file(path: Path) -> bytes:
    """The bytes of the regular file at ``path``. Raises OSError for anything else."""
    with open(open_file(path, os.O_RDONLY), "rb") as file:
        return file.read()


def file_digest(path: Path) -> str:
    """The SHA-256 of the regular file at ``path``, in hexadecimal digits. Raises OSError for anything else."""
    from hashlib import sha256

    return sha256(read_file(path)).hexdigest()


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of ``data``; a write that was cut short goes on, or fails with the reason why it was."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def append_file(path: Path, data: bytes) -> None:
    """Add ``data`` at the end of ``path``, made if missing; on disk when this returns."""
    descriptor = open_file(path, os.O_WRONLY | os.O_APPEND, create=True)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes) -> None:
    """Make ``data`` the content of ``path``, whole or not at all; on disk when this returns.

    A new file is open to its owner only; one that was there keeps its mode. Raises PermissionError when it is
    read-only. Two at once do not mix: the content is that of one of them.
    """
    from tempfile import mkstemp

    mode = PRIVATE_FILE
    with contextlib.suppress(FileNotFoundError):
        mode = stat.S_IMODE(path.stat().st_mode)
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    descriptor, name = mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        try:
            temporary.chmod(mode)
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def create_file(path: Path, data: bytes) -> None:
    """Make a new file of ``data``, whole or not at all. Raises FileExistsError when something is there already."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _CLOSE_ON_EXEC, PRIVATE_FILE))
    try:
        path.chmod(PRIVATE_FILE)
        replace_file(path, data)
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def sync_file(path: Path) -> None:
    """Have what was written to ``path`` by anyone on disk when this returns."""
    descriptor = open_file(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(path: Path) -> None:
    """Have the names in the folder ``path`` on disk when this returns, where the system can do that."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _CLOSE_ON_EXEC)
    except PermissionError:  # Windows, or a folder that may be written to but not read
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:
            raise
    finally:
        os.close(descriptor)


def remove_tree(path: Path) -> None:
    """Remove the folder ``path`` and all in it; of a symbolic link only the link, never what it leads to."""
    from shutil import rmtree

    if path.is_symlink():
        path.unlink()
        return
    with contextlib.suppress(OSError):
        path.chmod(PRIVATE_FOLDER)
    rmtree(path, ignore_errors=True)
    if path.is_dir():
        # What is left says why: this raises the OSError that was passed over above.
        rmtree(path)


def exchange(first: Path, second: Path) -> bool:
    """Swap two names in one step, so that a crash leaves either both as they were or both swapped.

    False, and nothing is changed, where the system or the file system has no such step; OSError when it fails.
    """
    import ctypes

    # The standard library has no such call. With two renames in its place there is a moment in which the first name
    # leads nowhere: another process that looks then is told that there is no such thing, and after a kill in that
    # moment it stays away until somebody puts it back.
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if rename is None:
        return False
    here, swap = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    if rename(here, os.fsencode(first), here, os.fsencode(second), swap) == 0:
        return True
    code = ctypes.get_errno()
    if code in {errno.ENOSYS, errno.EINVAL}:
        return False
    raise OSError(code, os.strerror(code), str(second))
