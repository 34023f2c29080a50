"""A configuration read from a YAML file, with every fault in one error."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from os import PathLike
from pathlib import Path as FilePath

from pydantic import ValidationError

from cleveragents.config.checks import whole_faults
from cleveragents.config.document import Document, read_document
from cleveragents.config.faults import fault_line, key_path, model_faults, typed_agents, unknown_key
from cleveragents.config.models import AppConfig
from cleveragents.config.yaml_nodes import Fault, Path, UnreadableError
from cleveragents.errors import ConfigError, ConfigNotFoundError
from cleveragents.values.text import clean_text

MAX_FAULTS = 100
"""How many faults of a file are told."""


def load_config(path: str | PathLike[str]) -> AppConfig:
    """The configuration in the YAML file ``path``.

    Raises ConfigNotFoundError, or ConfigError with one line for each fault, ``FILE:LINE: key.path: what is wrong``, in
    order of line, and at most a hundred of them.
    """
    return _loaded(FilePath(path))[0]


def load_with_doubts(path: str | PathLike[str]) -> tuple[AppConfig, list[str]]:
    """The configuration in the file ``path``, and a line for each thing in it that is allowed, and hardly meant.

    Raises ConfigError as ``load_config`` does.
    """
    from cleveragents.config.lint import doubts

    path = FilePath(path)
    config, document = _loaded(path)
    found = [Fault(document.line(place), place, f"warning: {text}") for place, text in doubts(config)]
    found.sort(key=lambda fault: fault.line)
    return config, [fault_line(_name(path), fault) for fault in found[:MAX_FAULTS]]


def _name(path: FilePath) -> str:
    return repr(str(path))[1:-1]


def _loaded(path: FilePath) -> tuple[AppConfig, Document]:
    file = _name(path)
    try:
        document = read_document(path)
    except UnreadableError as error:
        kind = ConfigNotFoundError if error.missing else ConfigError
        raise kind([fault_line(file, error.fault)]) from None
    data, faults = typed_agents(document)
    guessed = {fault.path[:2] for fault in faults}
    faults += _python_only(document)
    whole = islice(whole_faults(document.data), MAX_FAULTS + 1)
    faults += [Fault(document.line(place), place, text) for place, text in whole]
    try:
        config = AppConfig.model_validate({"name": default_actor(path), **data, "path": path})
    except ValidationError as error:
        faults += model_faults(error, document, guessed, MAX_FAULTS + 1)
        if not faults and not document.faults:
            raise
    if faults or document.faults:
        raise ConfigError(_lines(file, faults, document))
    return config, document


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
    """The faults in order of line, without those about what cannot be relied on, and not endlessly many."""

    def is_reliable(fault: Fault) -> bool:
        return not any(fault.path[:length] in document.unreliable for length in range(len(fault.path) + 1))

    kept = [*document.faults, *filter(is_reliable, faults)]
    kept.sort(key=lambda fault: (fault.line, key_path(fault.path)))
    lines = list(dict.fromkeys(fault_line(file, fault) for fault in kept))
    more = [f"{file}: there are more faults than these {MAX_FAULTS}"] if len(lines) > MAX_FAULTS else []
    return [*lines[:MAX_FAULTS], *more]
