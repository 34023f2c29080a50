"""A configuration read from a YAML file, with every fault in one error."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from os import PathLike
from pathlib import Path as FilePath

from pydantic import ValidationError

from cleveragents.config.checks import whole_faults
from cleveragents.config.document import Document, Fault, Path, UnreadableError, read_document
from cleveragents.config.faults import fault_line, key_path, model_faults, unknown_key
from cleveragents.config.models import AppConfig
from cleveragents.errors import ConfigError, ConfigNotFoundError
from cleveragents.values.text import clean_text


def load_config(path: str | PathLike[str]) -> AppConfig:
    """The configuration in the YAML file ``path``.

    Raises ConfigNotFoundError, or ConfigError with one line for each fault, ``FILE:LINE: key.path: what is wrong``, in
    order of line.
    """
    path = FilePath(path)
    file = repr(str(path))[1:-1]
    try:
        document = read_document(path)
    except UnreadableError as error:
        kind = ConfigNotFoundError if error.missing else ConfigError
        raise kind([fault_line(file, error.fault)]) from None
    data = document.data
    faults = [*document.faults, *_python_only(document)]
    faults += [Fault(document.line(place), place, text) for place, text in whole_faults(data)]
    try:
        config = AppConfig.model_validate({"name": default_actor(path), **data, "path": path})
    except ValidationError as error:
        faults += model_faults(error, document)
        if not faults:
            raise
    if faults:
        raise ConfigError(_lines(file, faults, document))
    return config


def default_actor(path: FilePath) -> str:
    """The actor of a file that names none: ``local/`` and the file's name, in the letters an actor may have."""
    plain = unicodedata.normalize("NFKD", clean_text(path.stem)).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9._-]+", "-", plain).strip("-._")[:64]
    return f"local/{name or 'agents'}"


def _python_only(document: Document) -> Iterator[Fault]:
    """The keys that the models have for Python alone: to a file they are as unknown as any other."""
    places: list[Path] = [("path",)]
    routes = document.data.get("routes")
    if isinstance(routes, dict):
        places += [
            ("routes", name, key)
            for name, route in routes.items()
            if isinstance(route, dict)
            for key in ("name", "source")
        ]
    for place in places:
        if place in document.lines:
            yield Fault(document.line(place), place, unknown_key(place))


def _lines(file: str, faults: list[Fault], document: Document) -> list[str]:
    kept = [
        fault
        for fault in faults
        if fault in document.faults or not any(fault.path[: len(bad)] == bad for bad in document.unreliable)
    ]
    return list(
        dict.fromkeys(
            fault_line(file, fault) for fault in sorted(kept, key=lambda fault: (fault.line, key_path(fault.path)))
        )
    )
