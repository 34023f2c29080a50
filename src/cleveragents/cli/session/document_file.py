"""The file of a session's export document, as it is read to import or to verify it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cleveragents.cli.kit.arguments import typed_text
from cleveragents.errors import SessionImportError


def read(file: Path) -> bytes:
    """What is in the file, of standard input for ``-``; one byte more than is imported when there is too much."""
    from cleveragents.disk.files import read_file, storage_errors
    from cleveragents.values.json import IMPORT_LIMIT

    if file == Path("-"):
        content = sys.stdin.buffer.read(IMPORT_LIMIT + 1)
    else:
        with storage_errors(file, "read"):
            content = read_file(file, IMPORT_LIMIT)
    return content.removeprefix(b"\xef\xbb\xbf")


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Have what is wrong with a document told with the name of its file."""
    try:
        yield
    except SessionImportError as error:
        raise type(error)(f"{typed_text(str(file))}: {error}") from None
