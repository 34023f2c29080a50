"""Finding messages by what they say."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cleveragents.contexts.context import ContextManager
from cleveragents.contexts.message import ContextMessage
from cleveragents.contexts.root import contexts_root, list_contexts, misnamed_folders
from cleveragents.errors import ContextError


@dataclass(frozen=True, slots=True)
class Found:
    """A message that contains what was looked for; ``number`` is its place in its context, from 1."""

    context: str
    number: int
    message: ContextMessage


def search_contexts(
    text: str,
    root: Path | None = None,
    *,
    name: str | None = None,
    on_damage: Callable[[str], object] | None = None,
) -> Iterator[Found]:
    """The messages whose text contains ``text``, upper or lower case, of all contexts or of ``name``.

    Of all, a context that cannot be read is told to ``on_damage`` and passed over; a named one raises its error.
    """
    wanted = _folded(text)
    if name is None and on_damage is not None:
        for folder in misnamed_folders(contexts_root() if root is None else root):
            on_damage(f"context {folder.name!r}: {folder.problem}")
    for context in list_contexts(root) if name is None else [name]:
        try:
            messages = ContextManager.open(context, root, on_damage=on_damage).messages
        except ContextError as error:
            if name is not None:
                raise
            if on_damage is not None:
                on_damage(str(error))
            continue
        for number, message in enumerate(messages, 1):
            if wanted in _folded(message.text):
                yield Found(context, number, message)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()
