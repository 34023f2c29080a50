"""The folder of one context: its paths, its lock, and whether it still is the context it was."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from cleveragents.contexts import root as store
from cleveragents.contexts.messages_file import MESSAGES_FILE
from cleveragents.contexts.state_file import DOCUMENT_FILE, Document, fingerprint, read_document
from cleveragents.disk import locks
from cleveragents.disk.files import replace_file, storage_errors
from cleveragents.errors import ContextDamagedError, ContextError, ContextNotFoundError

_T = TypeVar("_T")


class ContextFolder:
    """Where one context is kept. Remembers the context's id, to notice when another one has taken its name."""

    def __init__(self, root: Path, name: str) -> None:
        self.root = root
        self.name = name
        self.path = store.folder_of(root, name)
        self.messages = self.path / MESSAGES_FILE
        self.document = self.path / DOCUMENT_FILE
        self.lock = store.lock_of(root, name)
        self.turn_lock = store.lock_of(root, name, "turn")
        self._id: str | None = None
        self._checked: tuple[int, int, bytes] | None = None

    def not_found(self) -> ContextNotFoundError:
        """The error that says that there is no such context."""
        return ContextNotFoundError(f"there is no context {self.name!r}; 'cleveragents context list' shows all")

    def read_document(self) -> Document:
        """What ``context.json`` holds. Raises ContextNotFoundError when the context is gone or another one."""
        document = self.look(lambda: read_document(self.document))
        if self._id is None:
            self._id = document.id
        elif self._id != document.id:
            raise ContextNotFoundError(
                f"the context {self.name!r} that was opened has been deleted or replaced; open or reload it to use "
                "the one that has its name now"
            )
        return document

    def look(self, read: Callable[[], _T]) -> _T:
        """What ``read`` finds. A context that another process removes meanwhile is gone, not damaged."""
        try:
            return read()
        except ContextDamagedError:
            self.check_there()
            # The folder may have been another one at the first look.
            return read()

    def replace_document(self, document: Document) -> None:
        """Write ``context.json`` anew, its revision one higher. The caller holds the lock."""
        document.revision += 1
        content = document.as_bytes()
        with storage_errors(self.document):
            self.remove_temporary_files()
            replace_file(self.document, content)

    def remove_temporary_files(self) -> None:
        """Remove what a killed process left of a file it was replacing. The caller holds the lock."""
        with os.scandir(self.path) as entries:
            left = [entry.name for entry in entries if entry.name.startswith(".") and entry.name.endswith(".tmp")]
        for name in left:
            (self.path / name).unlink()

    def check(self) -> None:
        """Raise ContextNotFoundError unless the context is there and the same as before; costs little if it is."""
        found = fingerprint(self.document)
        if found is None or found != self._checked:
            self.read_document()
            self._checked = found

    @contextlib.contextmanager
    def locked(self, *, even_if_damaged: bool = False) -> Iterator[None]:
        """Hold the lock that guards the context's writes, and know that the context is there.

        ContextDamagedError is raised when ``context.json`` cannot be read, unless ``even_if_damaged``.
        """
        self.check_there()
        with store.locked(self.lock, self.name):
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
