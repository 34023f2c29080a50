"""The folder of all contexts: which there are, how one is made, moved and removed as a whole."""

from __future__ import annotations

import contextlib
import os
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from cleveragents.contexts.damage import unreadable
from cleveragents.contexts.messages_file import MESSAGES_FILE, look_at_end
from cleveragents.contexts.state_file import STATE_FILE, read_state
from cleveragents.disk import locks
from cleveragents.disk.files import exchange, make_folder, remove_tree, replace_file, storage_errors, sync_folder
from cleveragents.disk.home import data_home
from cleveragents.disk.locks import WRITE_WAIT
from cleveragents.errors import ContextBusyError, ContextError, ContextExistsError, InvalidNameError, StorageError
from cleveragents.values.names import context_name, same_but_for_case

# No context's name begins with a dot or contains "~", so none of these can be one.
_LOCKS, _NEW, _OLD, _GONE = ".locks", ".new-", ".old-", ".gone-"


@dataclass(frozen=True, slots=True)
class ContextInfo:
    """A context as a list shows it, without reading its conversation. ``size`` is that of the messages, in bytes."""

    name: str
    updated_at: datetime | None
    size: int | None
    problem: str | None


def contexts_root() -> Path:
    """The folder that holds the contexts unless a caller names another. Raises StorageError without a home."""
    return data_home() / "contexts"


def folder_of(root: Path, name: str) -> Path:
    """The folder of the context ``name``, whose name is UTF-8 on disk whatever the locale."""
    return root / os.fsdecode(name.encode())


def lock_of(root: Path, name: str, kind: str = "") -> Path:
    """The file whose lock guards the context ``name``: its writes, or its ``kind``."""
    return root / _LOCKS / os.fsdecode(f"{name}~{kind}".encode())


def list_contexts(root: Path | None = None) -> list[str]:
    """The names of all contexts, damaged ones too, sorted. Raises StorageError when the folder cannot be read."""
    return sorted(set(_names(contexts_root() if root is None else root)))


def describe_contexts(root: Path | None = None) -> list[ContextInfo]:
    """What a list shows of each context, sorted by name; what it costs does not depend on their lengths."""
    root = contexts_root() if root is None else root
    named = [_describe(root, name) for name in list_contexts(root)]
    return sorted([*named, *misnamed_folders(root)], key=lambda info: info.name)


def misnamed_folders(root: Path) -> list[ContextInfo]:
    """The folders whose names are none of contexts, which ``rename_folder`` mends; as a list shows them."""
    found = []
    for entry in sorted(_folders(root)):
        why = _name_of(root, entry)
        if isinstance(why, InvalidNameError):
            problem = f"{why}; 'cleveragents context rename' gives it another name"
            found.append(ContextInfo(_shown(entry), None, None, problem))
    return found


def rename_folder(root: Path, shown: str, new_name: str) -> bool:
    """Give the folder that ``misnamed_folders`` shows as ``shown`` a name that one can have.

    False when there is none; where several look the same it is the first. Raises ContextExistsError when the name is
    taken.
    """
    wanted = unicodedata.normalize("NFC", shown)
    for entry in sorted(_folders(root)):
        looks_so = unicodedata.normalize("NFC", _shown(entry)) == wanted
        if looks_so and isinstance(_name_of(root, entry), InvalidNameError):
            with storage_errors(root / entry, "rename"), name_reserved(root, new_name, but=""):
                (root / entry).rename(folder_of(root, new_name))
                sync_folder(root)
            return True
    return False


def is_context(root: Path, name: str) -> bool:
    """Whether there is a context of exactly this name, also where the file system ignores case."""
    folder = folder_of(root, name)
    try:
        found = folder.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StorageError(f"cannot read {root}: {error.strerror or error}") from error
    # Not asked anew: another process may delete it at any moment.
    if not stat.S_ISLNK(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise StorageError(f"{folder} is not a folder; move it away or choose another name")
    other = folder_of(root, name.swapcase())
    if other != folder and os.path.lexists(other) and folder.samefile(other):
        return name in _names(root)
    return True


def create_context(
    root: Path, name: str, files: Mapping[str, bytes | Iterable[bytes]], *, replace: bool | None = None
) -> None:
    """Make the context ``name`` of ``files``, whole or not at all; with ``replace`` in place of one that is there.

    Raises ContextExistsError when the name is taken, or would be where case is ignored; unless ``replace`` is None,
    it says that the context can be replaced. Raises ContextBusyError for one to replace that a run is using.
    """
    folder = folder_of(root, name)
    with storage_errors(folder):
        make_folder(root)
        with _root_locked(root):
            _sweep(root)
            taken = _taken(root, name, replace=replace)
            new = root / f"{_NEW}{os.urandom(8).hex()}"
            make_folder(new)
            try:
                for file, content in files.items():
                    replace_file(new / file, content)
                if taken:
                    with _out_of_use(root, name), locked(lock_of(root, name), name):
                        _swap(new, folder)
                else:
                    new.rename(folder)
                sync_folder(root)
            finally:
                # After an exchange this is the old context, after a failure the unfinished one.
                if os.path.lexists(new):
                    remove_tree(new)


@contextlib.contextmanager
def name_reserved(root: Path, name: str, but: str) -> Iterator[None]:
    """Have nobody take ``name`` inside the block, which ``but`` shall have in place of its own.

    Raises ContextExistsError when it is taken, or would be where case is ignored.
    """
    with storage_errors(root), _root_locked(root):
        clash = name if name == but else _clash(root, name, but)
        if clash is not None:
            raise _exists(name, clash)
        yield


def move_context(root: Path, name: str, new_name: str) -> None:
    """Give a context another name. The caller holds its locks, and has reserved the new name."""
    folder_of(root, name).rename(folder_of(root, new_name))
    _discard_locks(root, name)
    sync_folder(root)


def remove_context(root: Path, name: str) -> None:
    """Remove a context, whatever is in it. The caller holds its lock."""
    folder, gone = folder_of(root, name), root / f"{_GONE}{os.urandom(8).hex()}"
    with storage_errors(folder, "delete"):
        # Renamed first: from one moment to the next it is gone as a whole, even if removing it takes time.
        folder.rename(gone)
        _discard_locks(root, name)
        sync_folder(root)
    try:
        remove_tree(gone)
    except FileNotFoundError:
        pass  # another process swept it up
    except OSError as error:
        raise StorageError(
            f"context {name!r} is deleted, but its files in {gone} could not be removed: {error.strerror or error}"
        ) from error


@contextlib.contextmanager
def locked(path: Path, name: str) -> Iterator[None]:
    """Hold the lock ``path`` that guards the writes of the context ``name``. Raises ContextBusyError."""
    with storage_errors(path, "lock"):
        descriptor = locks.acquire(path, WRITE_WAIT)
    if descriptor is None:
        raise ContextBusyError(
            f"context {name!r} is being written by another process, which did not finish within {WRITE_WAIT:g} s"
        )
    try:
        yield
    finally:
        locks.release(descriptor)


@contextlib.contextmanager
def _out_of_use(root: Path, name: str) -> Iterator[None]:
    """Have no run use the context ``name`` inside the block. Raises ContextBusyError when one does."""
    descriptor = locks.acquire(lock_of(root, name, "turn"), 0)
    if descriptor is None:
        raise ContextBusyError(f"context {name!r} is in use by a run, and is not replaced; try again when it has ended")
    try:
        yield
    finally:
        locks.release(descriptor)


@contextlib.contextmanager
def _root_locked(root: Path) -> Iterator[None]:
    descriptor = locks.acquire(root / _LOCKS / "~", WRITE_WAIT)
    if descriptor is None:
        raise ContextBusyError(f"{root} is locked by another process, which did not finish within {WRITE_WAIT:g} s")
    try:
        yield
    finally:
        locks.release(descriptor)


def _discard_locks(root: Path, name: str) -> None:
    """Remove the lock files of a context that is no more. The caller holds its lock."""
    for kind in ("", "turn"):
        locks.discard(lock_of(root, name, kind))


def _entries(root: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(root) as entries:
            yield from entries
    except FileNotFoundError:
        return
    except OSError as error:
        raise StorageError(f"cannot read {root}: {error.strerror or error}") from error


def _folders(root: Path) -> Iterator[str]:
    """The names of the folders that are contexts, or may be meant to be."""
    for entry in _entries(root):
        if not entry.name.startswith(".") and (entry.is_symlink() or entry.is_dir()):
            yield entry.name


def _names(root: Path) -> Iterator[str]:
    for entry in _folders(root):
        name = _name_of(root, entry)
        if isinstance(name, str):
            yield name


def _name_of(root: Path, entry: str) -> str | InvalidNameError:
    """The name of the context in the folder ``entry``, or why it is none."""
    try:
        name = context_name(_shown(entry))
    except InvalidNameError as error:
        return error
    folder = folder_of(root, name)
    if folder.name == entry or _is_same(folder, root / entry):
        return name
    if _shown(entry) == name:
        return InvalidNameError("the folder's name is not UTF-8")
    return InvalidNameError("the folder's name is in decomposed Unicode, as other systems write it")


def _is_same(folder: Path, other: Path) -> bool:
    """Whether two names lead to one folder, as where the file system ignores how letters are composed."""
    try:
        return os.path.samestat(folder.lstat(), other.lstat())
    except OSError:
        return False


def _shown(entry: str) -> str:
    return os.fsencode(entry).decode(errors="replace")


def _clash(root: Path, name: str, but: str | None = None) -> str | None:
    """The name of a context that is ``name``, or would be where case is ignored; ``but`` is passed over."""
    return next((other for other in _names(root) if other != but and same_but_for_case(other, name)), None)


def _taken(root: Path, name: str, *, replace: bool | None) -> bool:
    """Whether there is a context that ``name`` shall replace. Raises ContextExistsError."""
    clash = _clash(root, name)
    if clash is None:
        return False
    folder = folder_of(root, name)
    if clash == name and is_empty(folder):
        return False  # renaming onto an empty folder replaces it
    if clash != name or not replace:
        raise _exists(name, clash, replaceable=replace is not None)
    return True


def is_empty(folder: Path) -> bool:
    """Whether ``folder`` is one that holds nothing, as someone made it by hand."""
    if folder.is_symlink():
        return False
    try:
        with os.scandir(folder) as entries:
            return next(entries, None) is None
    except OSError:
        return False


def _exists(name: str, clash: str, *, replaceable: bool = False) -> ContextExistsError:
    if name != clash:
        reason = f"would be the same as {clash!r}, which exists, where case is ignored; choose another name"
    else:
        reason = f"exists already; choose another name{', or --force to replace it' if replaceable else ''}"
    return ContextExistsError(f"context {name!r} {reason}", clash)


def _swap(new: Path, folder: Path) -> None:
    """Have the two change places. The caller holds the root's lock and that of the context."""
    if exchange(new, folder):
        return
    old = folder.with_name(f"{_OLD}{folder.name}")
    folder.rename(old)
    try:
        new.rename(folder)
    except OSError:
        old.rename(folder)
        raise
    old.rename(new)


def _sweep(root: Path) -> None:
    """Remove what a killed process left half made or half removed. The caller holds the root's lock."""
    for entry in list(_entries(root)):
        path = root / entry.name
        with contextlib.suppress(OSError):
            if entry.name.startswith(_OLD) and not os.path.lexists(root / entry.name.removeprefix(_OLD)):
                # It was killed between the two steps of a swap: what was there before comes back.
                path.rename(root / entry.name.removeprefix(_OLD))
            elif entry.name.startswith((_NEW, _OLD, _GONE)):
                remove_tree(path)


def _describe(root: Path, name: str) -> ContextInfo:
    folder = folder_of(root, name)
    problem, size, updated_at = None, None, None
    try:
        messages = (folder / MESSAGES_FILE).lstat()
        size = messages.st_size
        changed = max(messages.st_mtime, (folder / STATE_FILE).lstat().st_mtime)
        updated_at = datetime.fromtimestamp(changed, UTC)
        read_state(folder / STATE_FILE)
        problem = look_at_end(folder / MESSAGES_FILE).problem
    except OSError as error:
        problem = str(unreadable(Path(error.filename), error))
    except ContextError as error:
        problem = str(error)
    return ContextInfo(name, updated_at, size, problem)
