"""What the results of a batch are results of: the configuration, in a small file beside theirs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from cleveragents.disk.files import read_file, replace_file, storage_errors
from cleveragents.errors import BatchDamagedError, InvalidValueError
from cleveragents.values.json import dump_json, load_json


@dataclass(frozen=True, slots=True)
class Manifest:
    """The configuration file by its name and the SHA-256 of its bytes, and what options override in it.

    ``mixed`` tells that some of the results were copied from those of another configuration.
    """

    config: str
    config_sha256: str
    llm: str | None = None
    temperature: float | None = None
    unsafe: bool = False
    mixed: bool = False

    def same_configuration(self, other: Manifest) -> bool:
        """Whether both are of one configuration, whatever its file is called."""
        return (self.config_sha256, self.llm, self.temperature, self.unsafe) == (
            other.config_sha256,
            other.llm,
            other.temperature,
            other.unsafe,
        )


def manifest_path(results: Path) -> Path:
    """Where the manifest of the file ``results`` is."""
    return results.with_name(f"{results.name}.manifest.json")


def write_manifest(results: Path, manifest: Manifest) -> None:
    """Keep the manifest of the file ``results``; on disk when this returns."""
    path = manifest_path(results)
    with storage_errors(path):
        replace_file(path, dump_json({"version": 1, **asdict(manifest)}).encode() + b"\n")


def read_manifest(results: Path) -> Manifest | None:
    """The manifest of the file ``results``; None where there is none. Raises BatchDamagedError."""
    path = manifest_path(results)
    with storage_errors(path, "read"):
        try:
            data = read_file(path)
        except FileNotFoundError:
            return None
    try:
        facts = load_json(data)
        if facts.pop("version") != 1:
            raise ValueError  # noqa: TRY301 - one end for whatever is wrong with it
        return Manifest(**facts)
    except (InvalidValueError, AttributeError, TypeError, LookupError, ValueError):
        raise BatchDamagedError(
            f"{path} is not the manifest of a batch; remove it to go on without checking the configuration"
        ) from None
