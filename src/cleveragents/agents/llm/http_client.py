"""The HTTP client that llms' servers are asked by: bounded, patient with servers of any quality, careful with keys.

Without it, a server that cannot stream, or streams under another content type, could not be asked at all; one that
answers every path with a page of a login would be read to its end instead of told by its start; one that floods would
fill the memory; and one that sends on to another address would not be followed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import httpx2

from cleveragents.agents.llm.errors import FloodError, MovedError, UnreadableAnswerError, WayError
from cleveragents.agents.llm.event_stream import EventStream
from cleveragents.agents.llm.proxy import Proxy, proxy_for

_CONNECT_SECONDS = 5
_READ_SECONDS = 600
_LARGEST_PLAIN_ANSWER = 8_000_000  # bytes
_LARGEST_ERROR_PAGE = 65_536  # bytes
_MOST_REDIRECTS = 5
_PROXY_WANTS_PASSWORD = 407
_KEEPS_THE_REQUEST = {307, 308}  # every other redirect makes a GET of it


class Way(httpx2.AsyncBaseTransport):
    """Takes each request the way that the environment says, and says whose fault it is when that leads nowhere.

    Raises WayError for a proxy or a certificate that the environment names in vain.
    """

    def __init__(self) -> None:
        self._transports: dict[tuple[str, bool], httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The answer, by way of the proxy for its address if there is one."""
        url = request.url
        proxy = proxy_for(str(url))
        transport = self._transport(proxy, tls=url.scheme == "https")
        try:
            response = await transport.handle_async_request(request)
        except (httpx2.ProxyError, httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            if proxy is None:
                raise
            raise WayError(_blocked(proxy, error)) from None
        if proxy is not None and response.status_code == _PROXY_WANTS_PASSWORD:
            await response.aclose()
            raise WayError(_blocked(proxy, None))
        return response

    async def aclose(self) -> None:
        """Close every connection."""
        for transport in self._transports.values():
            await transport.aclose()

    def _transport(self, proxy: Proxy | None, *, tls: bool) -> httpx2.AsyncHTTPTransport:
        key = (proxy.url if proxy else "", tls)
        if key not in self._transports:
            if tls:
                _check_certificates()
            try:
                # Making a context for TLS takes longer than all the rest.
                verify = httpx2.create_ssl_context() if tls else False
                self._transports[key] = httpx2.AsyncHTTPTransport(verify=verify, proxy=proxy.url if proxy else None)
            except (ImportError, ValueError, httpx2.InvalidURL) as error:
                if proxy is None:
                    raise
                raise WayError(_unusable(proxy, error)) from None
        return self._transports[key]


def http_client() -> Client:
    """A client for one llm's server."""
    return Client(
        timeout=httpx2.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS),
        headers={"Accept-Encoding": "identity"},
        transport=Way(),
        trust_env=False,
    )


def _blocked(proxy: Proxy, error: Exception | None) -> str:
    if error is None or str(_PROXY_WANTS_PASSWORD) in str(error):
        return f"{proxy.named} wants a user and a password; write them into it, or except the host by NO_PROXY"
    if isinstance(error, httpx2.ProxyError):
        return f"{proxy.named} refused to pass the request on ({error}); or except the host by NO_PROXY"
    return f"{proxy.named} cannot be reached; does it run? Correct it, or except the host by NO_PROXY"


def _unusable(proxy: Proxy, error: Exception) -> str:
    if isinstance(error, ImportError):
        return f"{proxy.named} needs a package that is not installed; run: pip install 'httpx2[socks]'"
    return f"{proxy.named} is no address of a proxy; write it like http://host:port"


def _check_certificates() -> None:
    for variable in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        place = os.environ.get(variable)
        if place and not Path(place).exists():
            raise WayError(f"{variable} names {place}, which is not there; correct it or unset it")


class Client(httpx2.AsyncClient):
    """See the top of this file. ``send`` gives streams as ``EventStream`` has them; ``sent`` is its last request."""

    sent: httpx2.Request | None = None

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        """The answer; a stream of events where ``stream`` asks for one, whatever the server makes of that."""
        self.sent = request
        response = await self._followed(request, stream=stream, **options)
        if not stream:
            return response
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.is_error:
            return await _replaced(response, await _body(response, _LARGEST_ERROR_PAGE), kind or "text/plain")
        chat = response.request.url.path.endswith("/chat/completions")
        if kind == "text/event-stream":
            return await _replaced(response, EventStream(response, chat=chat), kind)
        body = await _body(response, _LARGEST_PLAIN_ANSWER + 1)
        if len(body) > _LARGEST_PLAIN_ANSWER:
            raise FloodError(f"an answer of more than {_LARGEST_PLAIN_ANSWER // 1_000_000} MB in one piece")
        if not chat:
            return await _replaced(response, body, kind)
        plain = httpx2.Response(200, content=_as_events(body, kind), request=response.request)
        return await _replaced(response, EventStream(plain, chat=chat), "text/event-stream")

    async def _followed(self, request: httpx2.Request, *, stream: bool, **options: Any) -> httpx2.Response:
        """The answer of where ``request`` is sent on to: on the same host only, since it bears a key."""
        for _ in range(_MOST_REDIRECTS):
            response = await super().send(request, stream=stream, **options)
            location = response.headers.get("location")
            if not response.is_redirect or not location:
                return response
            await response.aclose()
            target = request.url.join(location)
            safe = target.host == request.url.host and target.scheme in {request.url.scheme, "https"}
            if response.status_code not in _KEEPS_THE_REQUEST or not safe:
                raise MovedError(_place(target))
            headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}
            request = self.build_request(
                request.method,
                target,
                headers=headers,
                content=await request.aread(),
                extensions={**request.extensions},
            )
        raise MovedError(f"{_place(request.url)}, again and again")


def _place(url: httpx2.URL) -> str:
    """An address without what may be a secret."""
    path = url.path.removesuffix("/chat/completions").removesuffix("/responses")
    port = f":{url.port}" if url.port else ""
    return f"{url.scheme}://{url.host}{port}{path}"


async def _body(response: httpx2.Response, limit: int) -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > limit:
            break
    await response.aclose()
    return bytes(body[:limit])


async def _replaced(response: httpx2.Response, body: bytes | EventStream, kind: str) -> httpx2.Response:
    headers = {
        name: value
        for name, value in response.headers.items()
        if name not in {"content-encoding", "content-length", "content-type", "transfer-encoding"}
    }
    content: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {"stream": body}
    return httpx2.Response(
        response.status_code, headers={**headers, "content-type": kind}, request=response.request, **content
    )


def _as_events(body: bytes, kind: str) -> bytes:
    """A plain answer as the stream that was asked for. Raises UnreadableAnswerError when it is no answer at all."""
    if body.lstrip().startswith((b"data:", b"event:", b":")):
        return body  # a stream under another name
    start = f"starting with {body[:200].decode(errors='replace')!r}" if body else "and empty"
    shown = f"{kind or 'of no type'}, {start}"
    try:
        answer = json.loads(body)
        if "error" not in answer:
            choice = answer["choices"][0]
            delta = dict(choice["message"])
            calls = delta.get("tool_calls") or ()
            delta["tool_calls"] = [{**call, "index": index} for index, call in enumerate(calls)]
            answer["choices"] = [{"index": 0, "delta": delta, "finish_reason": choice.get("finish_reason") or "stop"}]
    except (ValueError, TypeError, LookupError, RecursionError, AttributeError):
        raise UnreadableAnswerError(shown) from None
    return b"data: " + json.dumps(answer).encode() + b"\n\ndata: [DONE]\n\n"
