"""Files that a crash leaves whole, in folders only their owner can enter.

Each function raises the OSError that says what failed; ``storage_errors`` around it makes that a line for people.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from cleveragents.errors import MissingFileError, StorageError

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700

_CLOSE_ON_EXEC: int = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# A named pipe in place of a file must not make an open wait for ever, nor a terminal become ours.
_NO_WAIT: int = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_ATTEMPTS = 100
_BLOCK = 2**20
_MOVE_HINT = "; check its permissions, or set CLEVERAGENTS_HOME to a folder you can write to"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
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
    """Make ``path`` and its missing parents, each open to its owner only, whatever the umask.

    Raises OSError, also where a parent is there and takes no folders.
    """
    missing = []
    while not os.path.lexists(path) and path != path.parent:
        missing.append(path)
        path = path.parent
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, _not_a_folder(path), str(path))
    for folder in reversed(missing):
        try:
            folder.mkdir(mode=PRIVATE_FOLDER)
        except FileExistsError:
            if not folder.is_dir():
                raise
        else:
            folder.chmod(PRIVATE_FOLDER)
            sync_folder(folder.parent)


def _not_a_folder(path: Path) -> str:
    return f"{path} is a link that leads nowhere" if path.is_symlink() else f"{path} is not a folder"


def open_file(path: Path, flags: int, *, create: bool = False, follow: bool = True) -> int:
    """A descriptor of the regular file at ``path``, opened with ``flags`` of ``os``, made if missing with ``create``.

    One that is made is open to its owner only. Without ``follow``, which is for the files in folders of our own, a
    symbolic link at ``path`` is refused. Raises OSError for anything but a regular file, and never waits for one.
    """
    flags |= _CLOSE_ON_EXEC | _NO_WAIT
    if not follow:
        _refuse_link(path)
        flags |= _NO_FOLLOW
    descriptor = _opened(path, flags, create=create)
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind == stat.S_IFREG:
        return descriptor
    os.close(descriptor)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def _opened(path: Path, flags: int, *, create: bool) -> int:
    # Others may make the file and remove it again meanwhile, but not for ever.
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, flags)
        if path.is_symlink() and not path.exists():
            raise OSError(errno.ELOOP, "a link that leads nowhere", str(path))
        if not create:
            break
        try:
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        except FileExistsError:
            continue  # another process was faster
        path.chmod(PRIVATE_FILE)
        sync_folder(path.parent)
        return descriptor
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def _refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise OSError(errno.ELOOP, "a symbolic link, which is not followed here", str(path))


def read_file(path: Path, limit: int | None = None, *, follow: bool = True) -> bytes:
    """The bytes of the regular file at ``path``, opened as by ``open_file``; at most ``limit`` of them, and one more.

    Who sets a limit sees by the one more that the file is larger. Raises OSError for anything but a regular file.
    """
    with open(open_file(path, os.O_RDONLY, follow=follow), "rb") as file:
        return file.read() if limit is None else file.read(limit + 1)


def file_digest(path: Path) -> str:
    """The SHA-256 of the regular file at ``path``, in hexadecimal digits. Raises OSError for anything else."""
    from hashlib import sha256

    return sha256(read_file(path)).hexdigest()


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of ``data``; a write that was cut short goes on, or fails with the reason why it was."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def in_blocks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """``pieces`` joined, since each call of the system costs as much as many of them."""
    held, size = [], 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= _BLOCK:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def append_file(path: Path, pieces: Iterable[bytes]) -> None:
    """Add ``pieces`` at the end of ``path``, made if missing, never through a link; on disk when this returns."""
    descriptor = open_file(path, os.O_WRONLY | os.O_APPEND, create=True, follow=False)
    try:
        for piece in pieces:
            write_all(descriptor, piece)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Make ``data``, in one piece or in many, the content of ``path``, whole or not at all; on disk when this returns.

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
            for block in [data] if isinstance(data, bytes) else in_blocks(data):
                write_all(descriptor, block)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def create_file(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Make a new file of ``data``, in one piece or in many, whole or not at all.

    Raises FileExistsError when something is there already.
    """
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _CLOSE_ON_EXEC, PRIVATE_FILE))
    try:
        path.chmod(PRIVATE_FILE)
        replace_file(path, data)
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        raise


def empty_file(path: Path) -> None:
    """Take away all that is in the file ``path``, which needs no space; not through a link."""
    descriptor = open_file(path, os.O_RDWR, follow=False)
    try:
        os.ftruncate(descriptor, 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_disk_full(error: StorageError) -> bool:
    """Whether it was for want of space, or for a limit on it, that the disk refused."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in _FULL


def sync_file(path: Path) -> None:
    """Have what was written to ``path`` by anyone on disk when this returns; not through a link."""
    descriptor = open_file(path, os.O_RDONLY, follow=False)
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
