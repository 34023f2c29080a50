"""A server on loopback that speaks the OpenAI chat API and says what a test has written down for it.

Give it a script, one entry for each request, made by the functions below; it records what it was asked::

    scripted_llm.script(fails(500), says("Paris"))
    LLMAgent("a", "openai:any", base_url=scripted_llm.url)
    scripted_llm.requests[0]["messages"]
"""

import json
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Entry = Callable[["Exchange"], None]
"""Answers one request; whatever it raises for a client that has gone is nobody's business."""


class Exchange:
    """One request, and the means to answer it."""

    def __init__(self, handler: BaseHTTPRequestHandler, request: Any, server: "ScriptedLLM") -> None:
        self._handler = handler
        self._server = server
        self.request = request

    @property
    def streams(self) -> bool:
        return isinstance(self.request, dict) and bool(self.request.get("stream"))

    def start(self, status: int, headers: Mapping[str, str]) -> None:
        self._handler.send_response(status)
        for name, value in headers.items():
            self._handler.send_header(name, value)
        self._handler.send_header("Connection", "close")
        self._handler.end_headers()

    def write(self, data: bytes) -> None:
        self._handler.wfile.write(data)
        self._handler.wfile.flush()

    def whole(self, status: int, body: bytes, kind: str, headers: Mapping[str, str] | None = None) -> None:
        self.start(status, {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})})
        self.write(body)

    def event(self, data: Any) -> None:
        """One event of a stream, as a chunk of its own."""
        text = data if isinstance(data, str) else json.dumps(data)
        event = f"data: {text}\n\n".encode()
        self.write(b"%x\r\n%s\r\n" % (len(event), event))

    def wait_until_the_client_leaves(self) -> None:
        """Wait until the client closes the connection, which raises an OSError, or the server stops."""
        self._handler.connection.settimeout(0.05)
        while not self._server.ended.is_set():
            with suppress(TimeoutError):
                if not self._handler.connection.recv(1):
                    raise ConnectionResetError

    def cut(self) -> None:
        """Break the connection off, as when a server is killed."""
        # Without lingering, closing is a reset.
        self._handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._handler.connection.shutdown(socket.SHUT_RDWR)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_args: Any) -> None:
        """A client that goes away is part of a test."""


class ScriptedLLM:
    """The server. ``url`` is what an agent has as its ``base_url``."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        """The body of each request, as JSON."""
        self.headers: list[dict[str, str]] = []
        """The headers of each request, with names in lower case."""
        self.departures = threading.Semaphore(0)
        """Released each time a client closes a connection on which it would have been sent more."""
        self.ended = threading.Event()
        """Set when the server stops: nothing waits longer."""
        self._script: list[Entry] = []
        self._otherwise = fails(400, "the script is over")
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def script(self, *entries: Entry) -> None:
        """What to say to the next requests, one entry each; after them every request fails."""
        with self._lock:
            self._script += entries

    def always(self, entry: Entry) -> None:
        """What to say to every request for which the script has nothing."""
        self._otherwise = entry

    def stop(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _next(self, request: Any, headers: Mapping[str, str]) -> Entry:
        with self._lock:
            self.requests.append(request)
            self.headers.append({name.lower(): value for name, value in headers.items()})
            return self._script.pop(0) if self._script else self._otherwise

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        scripted = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                request = json.loads(body)
                if not self.path.endswith(("/chat/completions", "/responses")):
                    self.send_error(404)
                    return
                exchange = Exchange(self, request, scripted)
                try:
                    scripted._next(request, dict(self.headers))(exchange)
                except OSError:
                    scripted.departures.release()
                self.close_connection = True

            def log_message(self, *_args: Any) -> None:
                pass

        return Handler


# --- what it can say ------------------------------------------------------------------------------------------


def says(
    text: str | Iterable[str] = "",
    *,
    calls: Iterable[tuple[str, Any]] = (),
    usage: Mapping[str, Any] | None = None,
    finish: str | None = None,
    then: Entry | None = None,
) -> Entry:
    """An answer: ``text``, streamed in the given pieces, and calls of tools as (name, arguments).

    ``then`` goes on in place of the end, once the pieces are sent.
    """
    pieces = [text] if isinstance(text, str) else list(text)
    tool_calls = [
        {
            "index": index,
            "id": f"call_{name}_{index}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for index, (name, given) in enumerate(calls)
    ]
    reason = finish or ("tool_calls" if tool_calls else "stop")
    counted = usage or {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    base = {"id": "chatcmpl-1", "created": 1_700_000_000, "model": "scripted"}

    def answer(exchange: Exchange) -> None:
        if not exchange.streams:
            message = {"role": "assistant", "content": "".join(pieces) or None, "tool_calls": tool_calls or None}
            choices = [{"index": 0, "message": message, "finish_reason": reason}]
            document = {**base, "object": "chat.completion", "choices": choices, "usage": counted}
            exchange.whole(200, json.dumps(document).encode(), "application/json")
            return
        exchange.start(200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"})
        chunk = {**base, "object": "chat.completion.chunk"}
        for delta in (
            {"role": "assistant", "content": ""},
            *({"content": piece} for piece in pieces if piece),
            *({"tool_calls": [call]} for call in tool_calls),
        ):
            exchange.event({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        if then is not None:
            then(exchange)
            return
        exchange.event({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        exchange.event({**chunk, "choices": [], "usage": counted})
        exchange.event("[DONE]")
        exchange.write(b"0\r\n\r\n")

    return answer


def calls(tool: str, arguments: Any) -> Entry:
    """A call of one tool; ``arguments`` is an object, or text that is sent as it is."""
    return says(calls=[(tool, arguments)])


def fails(status: int, message: Any = "no", headers: Mapping[str, str] | None = None) -> Entry:
    """An error of the API: a status, and a text or a whole error object."""
    error = message if isinstance(message, dict) else {"message": message, "type": "error", "code": None}
    body = json.dumps({"error": error}).encode()
    return lambda exchange: exchange.whole(status, body, "application/json", headers)


def sends(body: bytes, kind: str = "text/event-stream", status: int = 200) -> Entry:
    """These bytes, whatever they are."""
    return lambda exchange: exchange.whole(status, body, kind)


def hangs(exchange: Exchange) -> None:
    """Nothing more, for as long as the client waits: as an entry, or in place of an answer's end."""
    exchange.wait_until_the_client_leaves()


def cuts(exchange: Exchange) -> None:
    """A connection that breaks off: as an entry, or in place of an answer's end."""
    exchange.cut()
