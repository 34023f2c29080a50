"""The members of one JSON object that may be too large to hold, one after the other as its text comes in."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any

from cleveragents.errors import InvalidValueError
from cleveragents.values.json import scan_json

_WHITE_SPACE = " \t\n\r"
_MAY_GO_ON = {"", *"0123456789.eE+-"}
_END = b""


def json_members(pieces: Iterable[str], streamed: AbstractSet[str], limit: int) -> Iterator[tuple[str, Any]]:
    """The keys and values of the JSON object whose text is ``pieces``, in their order.

    The value of a key in ``streamed`` is a list, given as an iterator over its items, to be used up before the next
    member is asked for. No other value, and no item, may have more than ``limit`` characters. Raises InvalidValueError
    for text that is no JSON object, for a key that comes twice, and for what ``values.json.load_json`` refuses.
    """
    text = _Text(pieces, limit)
    if text.next_character() != "{":
        raise InvalidValueError("not JSON: no object" if text.next_character() == "" else "not a JSON object")
    text.skip()
    seen = set()
    more = text.next_character() != "}"
    while more:
        key = text.value()
        if not isinstance(key, str):
            raise InvalidValueError("not JSON: a key is not text")
        if key in seen:
            raise InvalidValueError(f"the key {key!r:.60} comes twice")
        seen.add(key)
        text.expect(":")
        yield key, _items(text, key) if key in streamed else text.value()
        more = text.goes_on("}")
    if not seen:
        text.skip()
    if text.next_character():
        raise InvalidValueError("not JSON: something follows its end")


def decoded(pieces: Iterable[bytes]) -> Iterator[str]:
    """The text of a JSON document that comes in pieces. Raises InvalidValueError for what is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    begun = False
    for piece in chain(pieces, [_END]):
        if not begun and piece.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InvalidValueError("UTF-16 text; save it as UTF-8")
        begun = begun or bool(piece)
        try:
            yield decoder.decode(piece, final=piece == _END)
        except UnicodeDecodeError as error:
            raise InvalidValueError(f"not JSON: {error}") from None


def _items(text: _Text, key: str) -> Iterator[Any]:
    if text.next_character() != "[":
        raise InvalidValueError("must be a list", key)
    text.skip()
    if text.next_character() == "]":
        text.skip()
        return
    more = True
    while more:
        yield text.value()
        more = text.goes_on("]")


class _Text:
    """Text that comes in pieces, of which only what is not read yet is held."""

    def __init__(self, pieces: Iterable[str], limit: int) -> None:
        self._pieces = iter(pieces)
        self._limit = limit
        self._held = ""
        self._at = 0

    def next_character(self) -> str:
        """The next character that is not white space, which stays; empty at the end."""
        while True:
            while self._at < len(self._held):
                if self._held[self._at] not in _WHITE_SPACE:
                    return self._held[self._at]
                self._at += 1
            if not self._read_more():
                return ""

    def skip(self) -> None:
        """Pass over the character that ``next_character`` found."""
        self._at += 1

    def expect(self, character: str) -> None:
        """Pass over ``character``. Raises InvalidValueError when another one is next."""
        if self.next_character() != character:
            raise InvalidValueError(f"not JSON: expected {character!r}")
        self.skip()

    def goes_on(self, end: str) -> bool:
        """Whether a comma is next, and not ``end``; passes over either."""
        found = self.next_character()
        if found != end:
            self.expect(",")
        else:
            self.skip()
        return found != end

    def value(self) -> Any:
        """The next value."""
        self.next_character()
        while True:
            found = scan_json(self._held, self._at)
            # A number that ends with the text that is there, or before the beginning of its rest, may go on.
            if found is not None and self._held[found[1] : found[1] + 1] not in _MAY_GO_ON:
                break
            if len(self._held) - self._at > self._limit:
                raise InvalidValueError(f"not JSON, or one value has more than {self._limit:,} characters")
            if not self._read_more():
                if found is None:
                    raise InvalidValueError("not JSON: a value is broken off, or is none")
                break
        value, self._at = found
        return value

    def _read_more(self) -> bool:
        """Hold twice of what is not read yet, so that a long value is not looked at again and again."""
        rest, size = [self._held[self._at :]], len(self._held) - self._at
        wanted = 2 * size
        for piece in self._pieces:
            rest.append(piece)
            size += len(piece)
            if size > wanted:
                break
        more = len(rest) > 1
        self._held, self._at = "".join(rest), 0
        return more
