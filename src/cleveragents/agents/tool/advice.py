"""What to write instead of what the sandbox's Python lacks: the way inside it first, ``--unsafe`` last."""

from __future__ import annotations

import re

INSTEAD = {
    "enum": "use constants, such as RED = 'red'",
    "heapq": "use sorted(values)[:n]",
    "io": "csv.reader takes text.splitlines(), and csv.writer an object with a write method",
    "operator": "use lambda item: item[0]",
    "secrets": 'use f"{random.getrandbits(128):032x}"',
    "statistics": "use sum(values) / len(values)",
    "string": "use methods of text, such as text.isdigit()",
    "textwrap": "join the words of text.split()",
    "uuid": 'use f"{random.getrandbits(128):032x}"',
}
"""By the module that is missing."""

_DELETION = re.compile(r"\s*del\s+(.+)\[(.+)\]\s*")
_MODULE = re.compile(r"No module named '(\w+)")
_BY_WORDS = {
    "yield": "build a list",
    "class inheritance": "write a plain class",
    "Permission denied": "hand the text over as the prompt, which may be piped in",
}
_LAST = "docs/tools.md says what it has instead; code that you trust can run with --unsafe"


def advice(error: str, line: str) -> str:
    """What to do about ``error``, the kind and the text of what ``line`` of the code raised; "" for nothing."""
    kind, _, message = error.partition(": ")
    if deletion := _DELETION.fullmatch(line):
        return f"write {deletion[1]}.pop({deletion[2]})"
    if not (
        kind in {"NotImplementedError", "ModuleNotFoundError", "ImportError", "PermissionError"}
        or (kind == "NameError" and _names_a_builtin(message))
        or (kind == "AttributeError" and message.startswith("module "))
        or (kind == "RuntimeError" and "not supported in this environment" in message)
    ):
        return ""
    if (module := _MODULE.search(message)) and module[1] in INSTEAD:
        return INSTEAD[module[1]]
    return next((instead for words, instead in _BY_WORDS.items() if words in message), _LAST)


def _names_a_builtin(message: str) -> bool:
    import builtins

    name = re.match(r"name '(\w+)' is not defined", message)
    # In a script, exit() would not help either.
    return name is not None and hasattr(builtins, name[1]) and name[1] not in {"exit", "quit"}
