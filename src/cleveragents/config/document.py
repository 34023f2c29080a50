"""A YAML file as plain data, with the line of everything in it.

Nodes are turned into data here, because here is where each value's line is still known, where double keys and foreign
tags can be named, and where what aliases expand to is bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from cleveragents.config.fields import shown
from cleveragents.config.yaml_nodes import MAX_DEPTH, Fault, Node, Path, UnreadableError, compose
from cleveragents.disk.files import read_file
from cleveragents.values.text import clean_text

if TYPE_CHECKING:
    from ruamel.yaml import YAML

MAX_BYTES = 1_000_000
"""The largest file that is read."""
MAX_REPEATED = 200_000
"""Values and characters that aliases repeat, all together."""

_TAG = "tag:yaml.org,2002:"


@dataclass
class Document:
    """What a file holds. ``faults`` are about its YAML, ``unreliable`` are paths with nothing to rely on there."""

    data: dict[str, Any] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    unreliable: set[Path] = field(default_factory=set)
    lines: dict[Path, int] = field(default_factory=dict)
    text_lines: dict[Path, int] = field(default_factory=dict)
    """Line on which the text of a ``|`` block begins, for the values that are one."""

    def nearest(self, path: Path) -> Path:
        """``path``, or as much of it as there is in the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return path

    def line(self, path: Path) -> int:
        """The line of what is at ``path``, or of the nearest thing around it; 0 for the whole file."""
        return self.lines.get(self.nearest(path), 0)


def read_document(path: FilePath) -> Document:
    """The document in the file ``path``. Raises UnreadableError."""
    text = _read_text(path)
    root, yaml = compose(text)
    if root is None or root.tag == _TAG + "null":
        raise UnreadableError("is empty; expected at least the key agents")
    document = Document()
    data = _Builder(document, yaml).value(root, ())
    if not isinstance(data, dict) and not document.faults:
        raise UnreadableError(
            f"holds {_kind(data)}, not keys and values; expected at least the key agents", _line(root)
        )
    document.data = data if isinstance(data, dict) else {}
    return document


def _kind(value: object) -> str:
    return "a list" if isinstance(value, list) else f"only {shown(value)}"


def _read_text(path: FilePath) -> str:
    try:
        content = read_file(path, MAX_BYTES)
    except FileNotFoundError:
        raise UnreadableError("there is no such file", missing=True) from None
    except IsADirectoryError:
        raise UnreadableError("is a folder, not a file") from None
    except PermissionError:
        raise UnreadableError("may not be read; check its permissions") from None
    except OSError as error:
        raise UnreadableError(f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise UnreadableError(f"is not the name of a file: {error}") from None
    if len(content) > MAX_BYTES:
        raise UnreadableError(f"is larger than {MAX_BYTES:,} bytes, the most a configuration may have")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UnreadableError(
            f"is not UTF-8 text (byte 0x{content[error.start]:02x}); save it as UTF-8", line
        ) from None


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


class _Builder:
    """Turns nodes into data, and notes in ``document`` where everything is and what is wrong."""

    def __init__(self, document: Document, yaml: YAML) -> None:
        self._document = document
        self._constructor = yaml.constructor
        self._seen: set[int] = set()
        self._repeated = 0
        self._depth = 0

    def value(self, node: Node, path: Path) -> Any:
        """The data of ``node``, which stands at ``path``."""
        self._count(node)
        self._depth += 1
        if self._depth > MAX_DEPTH + 1:
            # Reached by aliases alone: the nesting of the text itself was bounded when it was composed.
            raise UnreadableError(f"is nested deeper than {MAX_DEPTH} levels", _line(node))
        result = self._value(node, str(node.tag), path)
        self._depth -= 1
        return result

    def _count(self, node: Node) -> None:
        """Bound what aliases repeat: a node that has been seen before is one of those."""
        if id(node) in self._seen:
            self._repeated += 1 + (len(node.value) if node.id == "scalar" else 0)
            if self._repeated > MAX_REPEATED:
                raise UnreadableError("its aliases repeat more than a configuration may hold", _line(node))
        self._seen.add(id(node))

    def _value(self, node: Node, tag: str, path: Path) -> Any:
        if node.id == "mapping" and tag == _TAG + "map":
            return self._mapping(node, path)
        if node.id == "sequence" and tag == _TAG + "seq":
            return self._sequence(node, path)
        if node.id == "scalar":
            return self._scalar(node, tag.removeprefix(_TAG), path)
        return self._refused_tag(node, tag, path)

    def _mapping(self, node: Node, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _TAG + "merge":
                result |= self._merged(value_node, path)
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _TAG + "merge":
                continue
            key = self._key(key_node, path)
            if key is None:
                continue
            if key in first:
                self._fault(key_node, (*path, key), f"the key is there twice, first in line {first[key]}")
                continue
            first[key] = _line(key_node)
            self._document.lines[*path, key] = _line(key_node)
            if value_node.id == "scalar" and value_node.style == "|":
                self._document.text_lines[*path, key] = _line(value_node) + 1
            result[key] = self.value(value_node, (*path, key))
        return result

    def _merged(self, node: Node, path: Path) -> dict[str, Any]:
        """The keys that ``<<`` brings in; of several mappings, the first that has a key wins."""
        nodes = node.value if node.id == "sequence" else [node]
        result: dict[str, Any] = {}
        for part in reversed(nodes):
            keys = self.value(part, path) if part.id == "mapping" else None
            if isinstance(keys, dict):
                result |= keys
            else:
                self._fault(node, (*path, "<<"), "expected an alias of a mapping, or a list of them")
        return result

    def _sequence(self, node: Node, path: Path) -> list[Any]:
        result = []
        for index, item in enumerate(node.value):
            self._document.lines[*path, index] = _line(item)
            result.append(self.value(item, (*path, index)))
        return result

    def _key(self, node: Node, path: Path) -> str | None:
        self._count(node)
        if node.id == "scalar" and node.tag in {_TAG + "str", _TAG + "timestamp"}:
            return clean_text(node.value)
        if node.id == "scalar":
            kind = str(node.tag).removeprefix(_TAG)
            text = f"the key {shown(node.value)} is read as {kind}, not as text; put it in quotes"
        else:
            text = "a mapping or a list cannot be a key; expected text"
        self._fault(node, path, text)
        return None

    def _scalar(self, node: Node, kind: str, path: Path) -> Any:
        if kind in {"str", "timestamp"}:
            # A date stays as it was written: JSON has none.
            return clean_text(node.value)
        if kind == "null":
            return None
        if kind not in {"bool", "int", "float"}:
            return self._refused_tag(node, str(node.tag), path)
        try:
            return getattr(self._constructor, f"construct_yaml_{kind}")(node)
        except (ValueError, LookupError, OverflowError):
            self._unreliable(node, path, f"{shown(node.value)} cannot be read as {kind}")
            return None

    def _refused_tag(self, node: Node, tag: str, path: Path) -> None:
        self._unreliable(
            node, path, f"the YAML tag {shown(tag.replace(_TAG, '!!'))} is not allowed; write a plain value"
        )

    def _unreliable(self, node: Node, path: Path, text: str) -> None:
        self._document.unreliable.add(path)
        self._fault(node, path, text)

    def _fault(self, node: Node, path: Path, text: str) -> None:
        self._document.faults.append(Fault(_line(node), path, text))
