"""How much of a prompt llama.cpp has read, told as it says so: on a small machine a long one takes minutes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx2

from cleveragents.agents.events import PromptRead, tell

ASKED_FOR = {"return_progress": True}
"""What a request says, beside all else, to be told."""

_LONGEST_LINE = 65_536  # bytes; what is longer is a piece of an answer
_MARK = b'"prompt_progress"'


def telling_progress(agent: str) -> Callable[[httpx2.Response], Awaitable[None]]:
    """A hook on responses of a client: what they tell of the prompt is told of ``agent``, and they stay as they are."""

    async def hook(response: httpx2.Response) -> None:
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Watched(response.stream, agent)

    return hook


class _Watched(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, agent: str) -> None:
        self._stream = stream
        self._agent = agent

    async def __aiter__(self) -> AsyncIterator[bytes]:
        line = b""
        async for piece in self._stream:
            *complete, rest = (line + piece).split(b"\n")
            for told in complete:
                if _MARK in told and (event := _event(self._agent, told)):
                    tell(event)
            line = rest if len(rest) <= _LONGEST_LINE else b""
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


def _event(agent: str, line: bytes) -> PromptRead | None:
    try:
        progress = json.loads(line.removeprefix(b"data:"))["prompt_progress"]
        read, total = int(progress["processed"]), int(progress["total"])
    except (ValueError, TypeError, LookupError):  # a piece of an answer that speaks of it
        return None
    return PromptRead(agent, read, total) if 0 < read < total else None
