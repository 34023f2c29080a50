"""The prompts of a batch: a line each, as plain text, as a JSON text or in a JSON object."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from cleveragents.errors import InvalidValueError
from cleveragents.values.json import json_object, load_json
from cleveragents.values.text import clean_text

_EXPECTED = 'expected plain text, a JSON text, or an object with "prompt"'
_BEGINNINGS_OF_JSON = ("{", "[", '"')


@dataclass(frozen=True, slots=True)
class Prompt:
    """One line of the input, ``line`` counted from 1; ``fault`` tells why there is no prompt in it.

    ``sha256`` is that of the line without its end; ``rest`` what an object has beside the prompt.
    """

    line: int
    text: str = ""
    fault: str = ""
    sha256: str = ""
    rest: dict[str, Any] = field(default_factory=dict)


def read_prompts(data: bytes) -> list[Prompt]:
    """The prompt of every line of ``data`` that is not blank."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return [_prompt(number, line.removesuffix(b"\r")) for number, line in enumerate(lines, 1) if line.strip()]


def _prompt(number: int, line: bytes) -> Prompt:
    digest = sha256(line).hexdigest()
    try:
        plain = line.decode().strip()
    except UnicodeDecodeError:
        return Prompt(number, "", f"not UTF-8; {_EXPECTED}", digest)
    try:
        value = load_json(plain)
        rest = json_object(value, "") if isinstance(value, dict) else {}
    except InvalidValueError:
        # A broken object is a slip, and no llm shall be paid to read it.
        is_json = plain.startswith(_BEGINNINGS_OF_JSON)
        fault = f"not JSON, which it begins like; {_EXPECTED}" if is_json else ""
        return Prompt(number, "" if is_json else clean_text(plain), fault, digest)
    text = rest.pop("prompt", None) if isinstance(value, dict) else value
    if not isinstance(text, str):
        return Prompt(number, "", f"no prompt; {_EXPECTED}", digest, rest)
    return Prompt(number, clean_text(text), "" if text.strip() else "the prompt is empty", digest, rest)
