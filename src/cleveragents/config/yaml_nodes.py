"""A YAML text as nodes of the YAML library, in bounded time and memory, with its faults in our words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ruamel.yaml import YAML

MAX_DEPTH = 50
"""Levels of nesting."""
MAX_VALUES = 20_000
"""Keys and values in a file: they are read one by one, and each takes a tenth of a millisecond or more."""
_LONGEST_TAG = 1_000

Path = tuple[str | int, ...]
Node = Any
"""A scalar, sequence or mapping node of the YAML library, told apart by ``id``."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong, at a line (0: the file as a whole) and a path of keys."""

    line: int
    path: Path
    text: str


class UnreadableError(Exception):
    """A file out of which no data can be had; carries the one fault."""

    def __init__(self, text: str, line: int = 0, *, missing: bool = False) -> None:
        super().__init__(text)
        self.fault = Fault(line, (), text)
        self.missing = missing


def compose(text: str) -> tuple[Node | None, YAML]:
    """The root node of ``text``, and the library's reader, which knows scalars. Raises UnreadableError."""
    from ruamel.yaml import YAML
    from ruamel.yaml.composer import Composer, MaxDepthExceededError
    from ruamel.yaml.error import MarkedYAMLError
    from ruamel.yaml.reader import ReaderError
    from ruamel.yaml.scanner import Scanner

    class BoundedComposer(Composer):
        composed = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self.composed += 1
            if self.composed > MAX_VALUES:
                line = self.parser.peek_event().start_mark.line + 1
                raise UnreadableError(
                    f"holds more than {MAX_VALUES:,} keys and values, the most a configuration may have", line
                )
            return super().compose_node(parent, index)

    class BoundedScanner(Scanner):
        def fetch_more_tokens(self) -> Any:
            try:
                return super().fetch_more_tokens()
            except (ValueError, OverflowError):
                text = r"not YAML: a number here is too large; an escape such as \U0001F600 ends at 10FFFF"
                raise UnreadableError(text, self.reader.line + 1) from None

        def scan_tag(self) -> Any:
            if len(self.reader.prefix(_LONGEST_TAG).split(maxsplit=1)[0]) == _LONGEST_TAG:
                raise UnreadableError(f"not YAML: a tag of {_LONGEST_TAG:,} characters or more", self.reader.line + 1)
            return super().scan_tag()

    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = BoundedComposer
    yaml.Scanner = BoundedScanner
    yaml.max_depth = MAX_DEPTH
    yaml.composer.warn_double_anchors = False
    try:
        return yaml.compose(text), yaml
    except MaxDepthExceededError as error:
        raise UnreadableError(f"is nested deeper than {MAX_DEPTH} levels", _error_line(error)) from None
    except MarkedYAMLError as error:
        raise UnreadableError(_explanation(error), _error_line(error)) from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UnreadableError(
            f"not YAML: the character U+{ord(text[error.position]):04X} is not allowed", line
        ) from None


def _error_line(error: Any) -> int:
    mark = error.problem_mark or error.context_mark
    return mark.line + 1 if mark else 0


def _explanation(error: Any) -> str:
    """The library's words, in ours where they speak of its inner workings."""
    problem = " ".join(str(error.problem or "").split())
    if "another document" in problem:
        return "a second document begins here; expected one document in a file"
    if problem.startswith("found undefined alias"):
        return f"not YAML: {problem.removeprefix('found ')}; an anchor must come before its aliases"
    if problem.startswith("mapping values are not allowed"):
        return "not YAML: a ': ' stands in a value that is not quoted; quote it, or begin a block with |"
    if "'\\t'" in problem:
        return "not YAML: a tab stands where only spaces may; indent with spaces"
    if problem.startswith(("expected '<document start>'", "expected <block end>")):
        return "not YAML: this does not fit the lines above; check the indentation"
    context = " ".join(str(error.context or "").split())
    if context and error.context_mark:
        context += f" (from line {error.context_mark.line + 1})"
    return f"not YAML: {context}, {problem}" if context else f"not YAML: {problem}"
