"""The file of a session's export document, as it is read to import or to verify it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from cleveragents.cli.kit.arguments import typed_text
from cleveragents.errors import SessionImportError

_BLOCK = 2**20


@contextmanager
def opened(file: Path, max_size: int | None) -> Iterator[Iterator[bytes]]:
    """What is in the file, of standard input for ``-``, in pieces.

    What is wrong with the document is told with the name of the file, also that it has more than ``max_size`` bytes.
    """
    from cleveragents.disk.files import storage_errors

    with ExitStack() as stack:
        if file == Path("-"):
            source: BinaryIO = sys.stdin.buffer
        else:
            with storage_errors(file, "read"):
                source = stack.enter_context(_binary(file))
        try:
            yield _pieces(source, file, max_size)
        except SessionImportError as error:
            raise type(error)(f"{typed_text(str(file))}: {error}") from None


def _binary(file: Path) -> BinaryIO:
    import os

    from cleveragents.disk.files import open_file

    return os.fdopen(open_file(file, os.O_RDONLY), "rb")


def _pieces(source: BinaryIO, file: Path, max_size: int | None) -> Iterator[bytes]:
    from cleveragents.disk.files import storage_errors

    limit, size = _room() if max_size is None else max_size, 0
    reason = "the disk of temporary files (TMPDIR) has room for" if max_size is None else "--max-size allows"
    while True:
        with storage_errors(file, "read"):
            piece = source.read(_BLOCK)
        if not piece:
            return
        size += len(piece)
        if size > limit:
            raise SessionImportError(f"larger than {reason} ({limit:,} bytes)")
        yield piece


def _room() -> int:
    """The free space, in bytes, where a document is kept while it is checked."""
    from shutil import disk_usage
    from tempfile import gettempdir

    return disk_usage(gettempdir()).free
