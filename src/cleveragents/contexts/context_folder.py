"""The folder of one context: its paths, its lock, and whether it still is the context it was."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from cleveragents.contexts.messages_file import MESSAGES_FILE
from cleveragents.contexts.root import folder_of, lock_of, locked
from cleveragents.contexts.set_aside import damaged_file
from cleveragents.contexts.state_file import STATE_FILE, ContextState, fingerprint, read_state
from cleveragents.disk import locks
from cleveragents.disk.files import empty_file, is_disk_full, replace_file, storage_errors
from cleveragents.errors import ContextDamagedError, ContextError, ContextNotFoundError, StorageError

_T = TypeVar("_T")


class ContextFolder:
    """Where one context is kept. Remembers the context's id, to notice when another one has taken its name."""

    def __init__(self, root: Path, name: str) -> None:
        self.root = root
        self.name = name
        self.path = folder_of(root, name)
        self.messages_file = self.path / MESSAGES_FILE
        self.state_file = self.path / STATE_FILE
        self.lock = lock_of(root, name)
        self.turn_lock = lock_of(root, name, "turn")
        self._id: str | None = None
        self._checked: tuple[int, int, bytes] | None = None

    def not_found(self) -> ContextNotFoundError:
        """The error that says that there is no such context."""
        return ContextNotFoundError(f"there is no context {self.name!r}; 'cleveragents context list' shows all")

    def read_state(self) -> ContextState:
        """What ``context.json`` holds. Raises ContextNotFoundError when the context is gone or another one."""
        state = self.look(lambda: read_state(self.state_file))
        if self._id is None:
            self._id = state.id
        elif self._id != state.id:
            raise ContextNotFoundError(
                f"the context {self.name!r} that was opened has been deleted or replaced; open or reload it to use "
                "the one that has its name now"
            )
        return state

    def look(self, read: Callable[[], _T]) -> _T:
        """What ``read`` finds. A context that another process removes meanwhile is gone, not damaged."""
        try:
            return read()
        except ContextDamagedError:
            self.check_there()
            # The folder may have been another one at the first look.
            return read()

    def replace_state(self, state: ContextState) -> None:
        """Write ``context.json`` anew, its revision one higher. The caller holds the lock."""
        state.revision += 1
        content = state.as_bytes()
        with storage_errors(self.state_file):
            self.remove_temporary_files()
            replace_file(self.state_file, content)

    def clear(self, state: ContextState, *, everything: bool) -> None:
        """Take away the conversation, with ``everything`` the rest of ``state`` too. The caller holds the lock."""
        if everything:
            state.state, state.global_context, state.metadata = {}, {}, {}
        damaged = damaged_file(self.messages_file)
        try:
            self.replace_state(state)
            with storage_errors(self.messages_file):
                damaged.unlink(missing_ok=True)
                replace_file(self.messages_file, b"")
        except StorageError as error:
            if not is_disk_full(error):
                raise
            # On a full disk the conversation goes first: that needs no space, and makes some.
            with storage_errors(self.messages_file):
                empty_file(self.messages_file)
                damaged.unlink(missing_ok=True)
            state.revision -= 1
            # Without space even then only the count of changes stays as it was, unless more was to be changed.
            with contextlib.nullcontext() if everything else contextlib.suppress(StorageError):
                self.replace_state(state)

    def remove_temporary_files(self) -> None:
        """Remove what a killed process left of a file it was replacing. The caller holds the lock."""
        with os.scandir(self.path) as entries:
            left = [entry.name for entry in entries if entry.name.startswith(".") and entry.name.endswith(".tmp")]
        for name in left:
            (self.path / name).unlink()

    def check(self) -> None:
        """Raise ContextNotFoundError unless the context is there and the same as before; costs little if it is."""
        found = fingerprint(self.state_file)
        if found is None or found != self._checked:
            self.read_state()
            self._checked = found

    @contextlib.contextmanager
    def locked(self, *, even_if_damaged: bool = False) -> Iterator[None]:
        """Hold the lock that guards the context's writes, and know that the context is there.

        ContextDamagedError is raised when ``context.json`` cannot be read, unless ``even_if_damaged``.
        """
        self.check_there()
        with locked(self.lock, self.name):
            self.check_after_locking(self.lock, even_if_damaged=even_if_damaged)
            yield

    def check_after_locking(self, lock: Path, *, even_if_damaged: bool) -> None:
        """``check`` for who has acquired ``lock``, which is not left behind for a context that is gone."""
        try:
            self.check()
        except ContextNotFoundError:
            if not os.path.lexists(self.path):
                locks.discard(lock)
            raise
        except ContextError:
            if not even_if_damaged:
                raise

    def check_there(self) -> None:
        """Raise ContextNotFoundError unless there is a folder of this name, whatever is in it."""
        if not os.path.lexists(self.path):
            raise self.not_found()
