"""The file of a batch's results: one JSON object a line, on disk before the next one is written."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cleveragents.batch.manifest import Manifest, manifest_path, read_manifest, write_manifest
from cleveragents.batch.prompts import Prompt
from cleveragents.batch.results import Result
from cleveragents.disk.files import read_file, storage_errors, write_all
from cleveragents.errors import BatchBusyError, BatchDamagedError, BatchResultsError, InvalidValueError
from cleveragents.values.json import dump_json, load_json

Stored = dict[str, Any]
"""A result as it stands in the file."""


class ResultFile:
    """Results in a file that is open for this run alone.

    ``results`` are those that are in it. Those that ``copy`` is given are put between the others where they belong.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor = descriptor
        self._path = path
        self._copies: deque[Stored] = deque()
        self.results: list[Stored] = []

    def go_on(self) -> None:
        """Find the end of the results that are whole, and cut off what a crash left half-written after it."""
        with storage_errors(self._path, "read"), open(self._descriptor, "rb", closefd=False) as file:
            data = file.read()
        self.results, end = _whole(self._path, data)
        with storage_errors(self._path):
            os.ftruncate(self._descriptor, end)
            os.lseek(self._descriptor, end, os.SEEK_SET)

    def remaining(self, prompts: Sequence[Prompt]) -> list[Prompt]:
        """Those of ``prompts`` that have no result yet.

        Raises BatchResultsError when there are results of others: of lines that are not there or have changed since.
        """
        last = self.results[-1]["line"] if self.results else 0
        if last > max((prompt.line for prompt in prompts), default=0):
            raise BatchResultsError(f"{self._path} has results of {last} lines, which the input does not have")
        now = {prompt.line: prompt.sha256 for prompt in prompts}
        for result in self.results:
            if "sha256" in result and result["sha256"] != now.get(result["line"]):
                raise BatchResultsError(
                    f"line {result['line']} of the input has changed since {self._path} got its result; undo that, or "
                    f"use --rerun-changed {self._path} with a new --output"
                )
        return [prompt for prompt in prompts if prompt.line > last]

    def check_configuration(self, manifest: Manifest) -> bool:
        """Keep what new results are results of; whether those that are there could be compared with it.

        Raises BatchResultsError when those are of another configuration.
        """
        known = read_manifest(self._path) if self.results else None
        if known is not None and not known.same_configuration(manifest):
            raise BatchResultsError(
                f"{self._path} has results of another configuration than {manifest.config} is now with these options; "
                f"use --rerun-changed {self._path} with a new --output"
            )
        if not self.results:
            write_manifest(self._path, manifest)
        return known is not None or not self.results

    def copy(self, copies: Iterable[Stored]) -> None:
        """Have results of another file, in order of their lines, in this one as well."""
        self._copies.extend(copies)

    def append(self, result: Result) -> None:
        """Add a result at the end, and the copies that come before it; all are on disk when this returns."""
        self._put_copies(before=result.prompt.line)
        self._put(result.as_dict())
        self._sync()

    def finish(self) -> None:
        """Add the copies that come after the last result."""
        self._put_copies()
        self._sync()

    def discard(self) -> None:
        """Remove the file and what is beside it."""
        from cleveragents.disk.locks import discard

        discard(manifest_path(self._path))
        discard(self._path)

    def _put_copies(self, before: int | None = None) -> None:
        while self._copies and (before is None or self._copies[0]["line"] < before):
            self._put(self._copies.popleft())

    def _put(self, result: Stored) -> None:
        with storage_errors(self._path):
            write_all(self._descriptor, dump_json(result).encode() + b"\n")
        self.results.append(result)

    def _sync(self) -> None:
        with storage_errors(self._path):
            os.fsync(self._descriptor)


@contextmanager
def result_file(path: Path, *, resume: bool) -> Iterator[ResultFile]:
    """The file ``path``, new or, to ``resume``, with the results that are in it; others cannot write it meanwhile.

    One that an error leaves without any result is removed. Raises BatchResultsError when it is there and shall not be
    resumed, BatchBusyError when another run is writing it, and BatchDamagedError when something else is in it.
    """
    from cleveragents.disk.locks import acquire, release

    with storage_errors(path):
        # The lock is on the file itself, so that nothing is left beside it.
        descriptor = acquire(path.absolute(), 0, follow=True)
    if descriptor is None:
        raise BatchBusyError(f"another run is writing {path}; wait for it, or choose another --output")
    try:
        file = ResultFile(descriptor, path)
        if resume:
            file.go_on()
        elif os.fstat(descriptor).st_size:
            raise BatchResultsError(f"{path} is there already; add --resume to go on with it, or choose another")
        try:
            yield file
        except BaseException:
            if not os.fstat(descriptor).st_size:
                file.discard()
            raise
    finally:
        release(descriptor)


def read_results(path: Path) -> list[Stored]:
    """The whole results in the file ``path``. Raises BatchDamagedError when something else is in it."""
    with storage_errors(path, "read"):
        data = read_file(path)
    return _whole(path, data)[0]


def right_results(results: Iterable[Stored], prompts: Iterable[Prompt]) -> list[Stored]:
    """Those of ``results`` without an error whose line is among ``prompts``, each with the line's number of now.

    A line is known by its hash; where a result has none, by its number.
    """
    known: dict[str | int, deque[Stored]] = {}
    for result in results:
        if result["error"] is None:
            key: str | int = result["sha256"] if "sha256" in result else result["line"]
            known.setdefault(key, deque()).append(result)
    copies = []
    for prompt in prompts:
        found = known.get(prompt.sha256) or known.get(prompt.line)
        if found:
            copies.append({**found.popleft(), "line": prompt.line})
    return copies


def _whole(path: Path, data: bytes) -> tuple[list[Stored], int]:
    """The results in ``data``, the content of ``path``, and where the last whole one ends."""
    end = data.rfind(b"\n") + 1
    results: list[Stored] = []
    for number, line in enumerate(data[:end].split(b"\n")[:-1], 1):
        result = _stored(line)
        if result is None or result["line"] <= (results[-1]["line"] if results else 0):
            raise BatchDamagedError(f"line {number} of {path} is not the next result of a batch; nothing was changed")
        results.append(result)
    return results, end


def _stored(line: bytes) -> Stored | None:
    try:
        result = load_json(line)
    except (InvalidValueError, UnicodeDecodeError):
        return None
    if not isinstance(result, dict) or not isinstance(result.get("line"), int) or "error" not in result:
        return None
    return result if isinstance(result.get("sha256", ""), str) else None
