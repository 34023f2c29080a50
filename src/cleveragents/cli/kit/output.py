"""What the commands print: results on stdout, everything else on stderr, a terminal is given nothing it would obey."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, TextIO

from cleveragents.values.json import dump_json
from cleveragents.values.text import UNSAFE, terminal_text


def say(text: str) -> None:
    """A remark to the person, on stderr. A stderr that takes nothing is no reason to fail."""
    try:
        print(terminal_text(text), file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def warn(text: str) -> None:
    """A remark on what is not as it should be, which does not keep the command from going on."""
    say(f"warning: {text}")


def show(text: str) -> None:
    """Text from a conversation or an agent, on stdout."""
    print(for_stdout(text))


def for_stdout(text: str) -> str:
    """``text`` as stdout is given it: safe for a terminal, unchanged into a pipe or a file."""
    return terminal_text(text) if sys.stdout.isatty() else text


def show_json(value: Any) -> None:
    """One JSON value on one line of stdout, exactly as it is; what a console would obey, or cannot show, is escaped."""
    text = terminal_json(value)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        text = json.dumps(value, separators=(",", ":"))
    print(text)


def terminal_json(value: Any) -> str:
    """``value`` as one line of JSON, the characters that a terminal would obey as escapes: the same value."""
    text = dump_json(value)
    return text if text.isprintable() else UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def show_bytes(content: bytes) -> None:
    """The content of a file on stdout, byte for byte."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def discard_stdout() -> None:
    """Point stdout at nothing, once it takes no more: Python would complain when it flushes at exit."""
    _discard(sys.stdout)


def _discard(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def open_closed_streams() -> None:
    """Give standard streams that were closed by whoever started this process a place, before a file takes it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - open as long as the process
