"""Server-sent events as they come, as ones that a strict reader takes; bounded in size.

The format: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator

import httpx2

from cleveragents.agents.llm.chat_chunks import ChatChunks
from cleveragents.agents.llm.errors import FloodError

MAX_ANSWER = 64_000_000
"""Bytes of one answer, decoded: more than any llm says, even where each token is an event with ten fields."""

MAX_LINE = 8_000_000
"""Bytes of one line, decoded; a whole answer, or the arguments of a call, may come in one."""

_END = "[DONE]"


class EventStream(httpx2.AsyncByteStream):
    """The events of ``response``: what is no data is passed over, chunks of a chat completion are put right.

    Raises FloodError when it is more than an answer has.
    """

    def __init__(self, response: httpx2.Response, *, chat: bool) -> None:
        self._response = response
        self._chunks = ChatChunks() if chat else None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        events = _Events()
        size = 0
        async for piece in self._response.aiter_bytes():
            size += len(piece)
            if size > MAX_ANSWER:
                raise FloodError(f"an answer of more than {MAX_ANSWER // 1_000_000} MB")
            for name, data in events.feed(piece):
                if data.strip() == _END:
                    for line in self._end():
                        yield line
                    return
                for line in self._put_right(name, data):
                    yield line
        for name, data in events.rest():
            for line in self._put_right(name, data):
                yield line
        for line in self._end():
            yield line

    async def aclose(self) -> None:
        """Close the connection, wherever the stream is."""
        await self._response.aclose()

    def _put_right(self, name: str, data: str) -> Iterator[bytes]:
        if self._chunks is None:
            yield _event(name, data)
            return
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            yield _event(name, data)  # whoever reads it says what is wrong with it
            return
        for each in self._chunks.feed(chunk):
            yield _event("", json.dumps(each))

    def _end(self) -> Iterator[bytes]:
        if self._chunks is not None:
            for each in self._chunks.end():
                yield _event("", json.dumps(each))
            yield _event("", _END)


def _event(name: str, data: str) -> bytes:
    named = f"event: {name}\n" if name else ""
    lines = "".join(f"data: {line}\n" for line in data.split("\n"))
    return f"{named}{lines}\n".encode()


class _Events:
    """Names and data of the events in pieces of a stream; what has no data is none."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._after_return = False
        self._name = ""
        self._data: list[str] = []
        self._size = 0

    def feed(self, piece: bytes) -> Iterator[tuple[str, str]]:
        if self._after_return and piece.startswith(b"\n"):
            piece = piece[1:]
        self._after_return = piece.endswith(b"\r")
        self._line += piece
        if b"\n" not in piece and b"\r" not in piece:
            self._check()
            return
        *lines, rest = self._line.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._line = bytearray(rest)
        self._check()
        for line in lines:
            yield from self._read(line)

    def rest(self) -> Iterator[tuple[str, str]]:
        """The last event, when its end is missing but its data is whole."""
        yield from self._read(self._line)
        data = "\n".join(self._data).strip()
        if data.startswith("{") and data.endswith("}"):
            yield from self._read(bytearray())

    def _check(self) -> None:
        if len(self._line) > MAX_LINE or self._size > MAX_LINE:
            raise FloodError(f"a line of more than {MAX_LINE // 1_000_000} MB")

    def _read(self, line: bytearray) -> Iterator[tuple[str, str]]:
        if not line:
            if any(part.strip() for part in self._data):
                yield self._name, "\n".join(self._data)
            self._name, self._data, self._size = "", [], 0
            return
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode(errors="replace")
        if name == b"data":
            self._data.append(text)
            self._size += len(value)
            self._check()
        elif name == b"event":
            self._name = text
