"""The configuration file that a session was last run with: how it is remembered, and known again."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cleveragents.conversation.reserved import CONFIG, CONFIG_DIGEST, reserved, with_reserved
from cleveragents.disk.files import file_digest


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A configuration file on this host: its whole path, and its SHA-256, None when it cannot be read any more."""

    path: Path
    digest: str | None

    @classmethod
    def at(cls, path: Path) -> Self:
        """The file at ``path`` as it is now."""
        digest = None
        with suppress(OSError):
            digest = file_digest(path)
        return cls(path.absolute(), digest)

    def as_metadata(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """What remembers this file in a session's metadata, empty where ``known`` tells it already."""
        ours = {CONFIG: str(self.path), CONFIG_DIGEST: self.digest}
        return {} if all(reserved(known, key) == value for key, value in ours.items()) else with_reserved({}, ours)

    def is_remembered(self, metadata: Mapping[str, Any]) -> bool:
        """Whether a session with ``metadata`` was last run with this file.

        It is known by its path; where that leads to no file here, as from another host, by its name and its digest.
        """
        last = reserved(metadata, CONFIG)
        if not isinstance(last, str) or not Path(last).is_absolute():
            return False
        path = Path(last)
        try:
            if path == self.path or path.resolve() == self.path.resolve():
                return True
            there = path.exists()
        except (OSError, ValueError, RuntimeError):  # a path that is none here
            there = False
        same_name = last.replace("\\", "/").rpartition("/")[2] == self.path.name
        return not there and same_name and self.digest is not None and reserved(metadata, CONFIG_DIGEST) == self.digest
