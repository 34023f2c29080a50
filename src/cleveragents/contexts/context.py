"""One named context: what a program reads from it and writes to it."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from cleveragents.contexts import transfer
from cleveragents.contexts.context_folder import ContextFolder
from cleveragents.contexts.damage import Told, with_advice
from cleveragents.contexts.history import history_text
from cleveragents.contexts.message import ContextMessage, new_message
from cleveragents.contexts.messages_file import (
    MESSAGES_FILE,
    Reading,
    append,
    each_message,
    look_at_end,
    read_all,
    read_last,
    refuse_unreadable,
)
from cleveragents.contexts.repair import repair
from cleveragents.contexts.root import (
    contexts_root,
    create_context,
    is_context,
    is_empty,
    move_context,
    name_reserved,
    remove_context,
)
from cleveragents.contexts.set_aside import damaged_file
from cleveragents.contexts.state_file import STATE_FILE, ContextState
from cleveragents.disk import locks
from cleveragents.disk.export_file import write_export_pieces
from cleveragents.disk.files import storage_errors, sync_file, sync_folder
from cleveragents.disk.locks import TURN_WAIT, WRITE_WAIT
from cleveragents.errors import (
    ContextBusyError,
    ContextDamagedError,
    ContextError,
    ContextExistsError,
    ContextNotFoundError,
    InvalidSettingError,
)
from cleveragents.values.json import json_object, whole_number
from cleveragents.values.merge import Removal, checked_removals, merged
from cleveragents.values.names import context_name
from cleveragents.values.text import terminal_text


class ContextManager:
    """A named context on disk: a conversation, a state, a global context and metadata.

    Constructing one makes its folder and files where there are none, unless ``create`` is False. The manager
    keeps no copy of what is in them: every access sees the disk, every change is on disk when the call returns,
    and changes of several managers, threads and processes add up. ``on_damage`` is told in a sentence of lines
    that cannot be read, each finding once; without it they are logged as warnings.

    Raises InvalidNameError before anything is touched, ContextNotFoundError for a context that is gone or was
    replaced (a manager never brings one back), ContextDamagedError for a file in which nothing can be read,
    ContextBusyError when another process does not let go, StorageError when the disk refuses, and
    InvalidValueError for what cannot be stored.
    """

    def __init__(
        self,
        name: str,
        root: Path | None = None,
        *,
        create: bool = True,
        on_damage: Callable[[str], object] | None = None,
    ) -> None:
        name = context_name(name)
        self._told = Told(on_damage)
        self._folder = ContextFolder(contexts_root() if root is None else Path(root), name)
        while not self._found(or_empty=not create):
            if not create:
                raise self._folder.not_found()
            files = {STATE_FILE: ContextState().as_bytes(), MESSAGES_FILE: b""}
            try:
                create_context(self._folder.root, name, files)
            except ContextExistsError as error:
                if error.taken != name:
                    raise
                # Another process made the same one at the same time: look again.

    @classmethod
    def open(
        cls, name: str, root: Path | None = None, *, on_damage: Callable[[str], object] | None = None
    ) -> ContextManager:
        """The manager of a context that is there, else ContextNotFoundError; makes nothing."""
        return cls(name, root, create=False, on_damage=on_damage)

    def __repr__(self) -> str:
        return f"ContextManager({self.name!r}, {str(self._folder.root)!r})"

    @property
    def name(self) -> str:
        """The context's name, in its stored form."""
        return self._folder.name

    @property
    def directory(self) -> Path:
        """The folder the context is kept in."""
        return self._folder.path

    def exists(self) -> bool:
        """Whether anything was ever saved in it: False for one just made or deleted, True after the first change."""
        folder, messages = self._folder, self._folder.messages_file
        if not is_context(folder.root, folder.name):
            return False
        try:
            return messages.stat().st_size > 0 or damaged_file(messages).exists() or self.revision > 0
        except ContextNotFoundError:
            return False
        except (OSError, ContextError):
            return True  # what cannot be read is something

    # --- the conversation -------------------------------------------------------------------------------

    def add_message(
        self,
        role: str,
        content: Any,
        metadata: Mapping[str, Any] | None = None,
        timestamp: datetime | None = None,
    ) -> ContextMessage:
        """Put a message at the end of the conversation and give it back as it is stored.

        ``role`` is user, assistant, system or tool; ``content`` text or a list of parts; ``timestamp`` an aware
        time, now by default. The cost does not grow with the conversation.
        """
        message = new_message(role, content, metadata, timestamp)
        line = message.as_line()
        with self._folder.locked():
            torn = append(self._folder.messages_file, line)
        if torn:
            path = self._folder.messages_file
            self._told.tell_set_aside(self.name, path, torn, damaged_file(path))
        return message

    @property
    def messages(self) -> list[ContextMessage]:
        """The whole conversation, oldest first, read from disk at each access."""
        return self._read(read_all)

    def last_messages(self, n: int) -> list[ContextMessage]:
        """The last ``n`` messages, oldest first; reads the end of the file only. The last 0 messages are none."""
        count = whole_number(n, "the number of messages")
        return self._read(lambda path: read_last(path, count))

    def formatted_history(self, include_metadata: bool = False, last: int | None = None) -> str:
        """The conversation, or its ``last`` messages, as text for a terminal; times in UTC, further lines indented."""
        messages = self.messages if last is None else self.last_messages(last)
        return history_text(messages, terminal_text, metadata=include_metadata)

    # --- state, global context, metadata ----------------------------------------------------------------

    @property
    def state(self) -> dict[str, Any]:
        """The state, a copy read from disk at each access."""
        return self._folder.read_state().state

    def update_state(self, changes: Mapping[str, Any], removed: Iterable[Removal] = ()) -> None:
        """Merge ``changes`` into the state, nested mappings per nested key; take away ``removed`` keys or paths."""
        self._update("state", changes, removed)

    @property
    def global_context(self) -> dict[str, Any]:
        """The global context, a copy read from disk at each access."""
        return self._folder.read_state().global_context

    def update_global_context(self, changes: Mapping[str, Any], removed: Iterable[Removal] = ()) -> None:
        """Merge ``changes`` into the global context as ``update_state`` does."""
        self._update("global_context", changes, removed)

    @property
    def metadata(self) -> dict[str, Any]:
        """The metadata, a copy read from disk at each access."""
        return self._folder.read_state().metadata

    def update_metadata(self, changes: Mapping[str, Any], removed: Iterable[Removal] = ()) -> None:
        """Merge ``changes`` into the metadata as ``update_state`` does."""
        self._update("metadata", changes, removed)

    @property
    def created_at(self) -> datetime:
        """When the context was made; aware, in UTC."""
        return self._folder.read_state().created_at

    @property
    def revision(self) -> int:
        """How often state, global context or metadata were changed, or the conversation cleared."""
        return self._folder.read_state().revision

    # --- as a whole -------------------------------------------------------------------------------------

    def save(self) -> None:
        """Have everything on disk, which it is after every change already; what other processes wrote stays."""
        self._folder.check()
        with storage_errors(self.directory):
            sync_file(self._folder.messages_file)
            sync_file(self._folder.state_file)
            sync_folder(self.directory)

    def reload(self) -> None:
        """Go on with the context that has this name now, even if it is another one than before."""
        folder = ContextFolder(self._folder.root, self.name)
        if not is_context(folder.root, folder.name):
            raise folder.not_found()
        self._folder = folder
        self._told.forget()
        folder.check()

    def clear(self, everything: bool = False) -> None:
        """Empty the conversation and keep the rest; with ``everything`` empty state, global context and metadata.

        Takes no turn, so that a turn may do it; outside of one, enter ``turn`` so as not to empty another's half-way.
        """
        with self._folder.locked():
            refuse_unreadable(self._folder.messages_file, look_at_end(self._folder.messages_file))
            stored = self._folder.read_state()
            self._folder.clear(stored, everything=everything)

    def delete(self) -> None:
        """Remove the folder and everything in it, damaged or not; a symbolic link is removed, not followed."""
        with self._folder.locked(even_if_damaged=True):
            remove_context(self._folder.root, self.name)

    def rename(self, new_name: str) -> None:
        """Give the context another name. Raises ContextExistsError, and ContextBusyError while a run is using it."""
        folder = ContextFolder(self._folder.root, context_name(new_name))
        with (
            self.turn(wait=0),
            name_reserved(folder.root, folder.name, but=self.name),
            self._folder.locked(even_if_damaged=True),
        ):
            move_context(folder.root, self.name, folder.name)
        self._folder = folder

    def copy(self, new_name: str) -> ContextManager:
        """A new context with everything that is in this one. Raises ContextExistsError."""
        state, messages = self._as_it_is()
        with transfer.copied(state, messages, self._folder.root) as files:
            return self._make(files, new_name, self._folder.root, self._told.listener)

    def damage(self) -> list[str]:
        """What ``repair`` would do, a sentence each; reads everything and changes nothing."""
        return repair(self._folder, really=False)

    def repair(self) -> list[str]:
        """Set aside what cannot be read, in files ``….damaged`` beside it; tells what was done, a sentence each."""
        with self._folder.locked(even_if_damaged=True):
            done = repair(self._folder, really=True)
        self.reload()
        return done

    @contextlib.contextmanager
    def turn(self, wait: float = TURN_WAIT, *, cancelled: threading.Event | None = None) -> Iterator[None]:
        """Have the context's one turn inside the block; it ends with the process if that dies.

        Raises ContextBusyError when another run does not finish within ``wait`` seconds. It may be entered in a
        worker thread and left in another: setting ``cancelled`` ends the waiting at once, with the same error.
        """
        if isinstance(wait, bool) or not isinstance(wait, int | float) or not 0 <= wait < math.inf:
            raise InvalidSettingError(f"the time to wait must be 0 or more seconds, not {wait!r:.60}")
        self._folder.check_there()
        lock = self._folder.turn_lock
        with storage_errors(lock, "lock"):
            descriptor = locks.acquire(lock, wait, cancelled)
        if descriptor is None:
            raise ContextBusyError(
                f"context {self.name!r} is in use by another run; try again when it has ended (a run can --wait longer)"
            )
        try:
            self._folder.check_after_locking(lock, even_if_damaged=True)
            yield
        finally:
            locks.release(descriptor)

    # --- export and import ------------------------------------------------------------------------------

    def export(self) -> dict[str, Any]:
        """Everything in the context as one JSON document with a checksum; see ``contexts.transfer``."""
        state, messages = self._as_it_is()
        return transfer.export_document(transfer.Snapshot(self.name, state, list(messages)))

    def export_pieces(self) -> Iterator[bytes]:
        """The content of an export file, piece by piece, so that a long conversation needs little memory."""
        state, messages = self._as_it_is()
        return transfer.export_pieces(self.name, state, messages)

    def export_to(self, path: Path | str, *, overwrite: bool = False) -> None:
        """Write the export document to ``path``. A file that is there is kept unless ``overwrite``: StorageError."""
        write_export_pieces(self.export_pieces(), Path(path), overwrite=overwrite)

    @classmethod
    def import_from(
        cls,
        path: Path | str | BinaryIO,
        name: str | None = None,
        root: Path | None = None,
        replace: bool = False,
        *,
        on_damage: Callable[[str], object] | None = None,
        max_size: int | None = None,
    ) -> ContextManager:
        """The context ``name``, else the one the file names, made of an export; with ``replace`` exactly that.

        ``path`` is a file's, or what is open for reading bytes, such as standard input. At most ``max_size`` bytes
        are read, without one what the disk has room for.

        Raises ContextImportError before anything is written when the file is not a whole and unchanged export,
        and ContextExistsError when the name is taken.
        """
        root = contexts_root() if root is None else Path(root)
        source = Path(path) if isinstance(path, str) else path
        with transfer.imported(source, root, max_size) as (old_name, files):
            return cls._make(files, old_name if name is None else name, root, on_damage, replace=replace)

    @classmethod
    def _make(
        cls,
        files: transfer.Files,
        name: str,
        root: Path,
        on_damage: Callable[[str], object] | None,
        *,
        replace: bool | None = None,
    ) -> ContextManager:
        name = context_name(name)
        create_context(root, name, files, replace=replace)
        return cls.open(name, root, on_damage=on_damage)

    def _as_it_is(self) -> tuple[ContextState, Iterator[ContextMessage]]:
        """Everything in the context as it is at one moment; the messages are read while they are asked for."""
        found = Reading()
        messages = each_message(self._folder.messages_file, found)
        with locks.held_if_there(self._folder.lock, WRITE_WAIT):
            state = self._folder.read_state()
            # Opens the file; what is added to it from now on is left out.
            first = list(islice(messages, 1))
        refuse_unreadable(self._folder.messages_file, found)
        return state, chain(first, messages, self._told_at_the_end(found))

    def _told_at_the_end(self, found: Reading) -> Iterator[ContextMessage]:
        """No message: tells of what could not be read, when all has been read."""
        self._tell_problem(found)
        yield from ()

    # --- inside -----------------------------------------------------------------------------------------

    def _found(self, *, or_empty: bool) -> bool:
        """Whether there is a context of this name; the first one found is the one this manager is for."""
        folder = self._folder
        if not is_context(folder.root, folder.name) or (not or_empty and is_empty(folder.path)):
            return False
        try:
            folder.check()
        except ContextNotFoundError:
            return False
        except ContextError:
            pass  # damage is reported when a file is used: deleting works without reading it
        return True

    def _read(self, read: Callable[[Path], Reading]) -> list[ContextMessage]:
        # The conversation can be read without a state, but not another context's in place of this one's.
        with contextlib.suppress(ContextDamagedError):
            self._folder.check()
        reading = self._folder.look(lambda: read(self._folder.messages_file))
        if reading.torn:
            # Another process may be in the middle of writing that line: look again when it has finished.
            with locks.held_if_there(self._folder.lock, WRITE_WAIT):
                reading = self._folder.look(lambda: read(self._folder.messages_file))
        self._tell_problem(reading)
        return reading.messages

    def _update(self, section: str, changes: Mapping[str, Any], removed: Iterable[Removal]) -> None:
        changes = json_object(changes, section)
        gone = checked_removals(removed)
        with self._folder.locked():
            if changes or gone:
                stored = self._folder.read_state()
                setattr(stored, section, merged(getattr(stored, section), changes, gone))
                self._folder.replace_state(stored)

    def _tell_problem(self, reading: Reading) -> None:
        path = self._folder.messages_file
        if reading.torn:
            self._told.tell_torn(self.name, path, len(reading.torn), damaged_file(path))
        elif reading.problem:
            self._told.tell(self.name, with_advice(reading.problem))
