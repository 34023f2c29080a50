"""Requests to an llm through pydantic-ai: the connection, the answer as it arrives, and when to ask again."""

from __future__ import annotations

import asyncio
import json
import os
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import httpx2
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelRateLimitError,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
)
from pydantic_ai.messages import ModelMessage, ModelResponse, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer, OpenAIModelProfile
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from cleveragents.agents.llm.errors import NO_PROVIDER, Asked, UnreadableAnswerError, llm_error
from cleveragents.config.rules import address_fault
from cleveragents.errors import LLMError

if TYPE_CHECKING:
    from pydantic_ai.settings import ModelSettings

RETRY_WAITS = (0.5, 1.0)
"""Seconds before a question is asked again after a passing failure; a server's own wish is followed up to the last."""

_CONNECT_SECONDS = 5
_READ_SECONDS = 600
_LARGEST_PLAIN_ANSWER = 8_000_000  # bytes
_LARGEST_ERROR_PAGE = 65_536  # bytes


class Chat:
    """A connection to one llm, for the requests of one answer. Made by ``connect``."""

    def __init__(self, model: Model, asked: Asked) -> None:
        self._model = model
        self._asked = asked

    async def stream(
        self, messages: Sequence[ModelMessage], settings: ModelSettings, parameters: ModelRequestParameters
    ) -> AsyncGenerator[str | ModelResponse]:
        """The answer's text piece by piece, then the whole response. Raises LLMError.

        A failure that may pass is met by asking again, as long as nothing of the answer has been handed out.
        """
        if "max_retries" not in self._model.unsupported_settings:
            # One place decides how often and how patiently to ask again.
            settings = {**settings, "max_retries": 0}
        waits = iter(RETRY_WAITS)
        with telling(self._asked):
            while True:
                started = False
                try:
                    async with model_request_stream(
                        self._model, messages, model_settings=settings, model_request_parameters=parameters
                    ) as response:
                        async for event in response:
                            if text := _text(event):
                                started = True
                                yield text
                        yield response.get()
                        return
                except ModelAPIError as error:
                    wait = None if started else _wait(error, next(waits, None))
                    if wait is None:
                        raise
                await asyncio.sleep(wait)


@contextmanager
def telling(asked: Asked) -> Iterator[None]:
    """Turn whatever a request raises into an LLMError.

    The cause is left behind on purpose: a traceback would show what the error's text keeps back.
    """
    try:
        yield
    except LLMError:
        raise
    except Exception as error:  # noqa: BLE001 - a server can make its client's library fail in any way
        raise asked.error(error) from None


def _text(event: Any) -> str:
    match event:
        case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
            return text
    return ""


def _wait(error: ModelAPIError, usual: float | None) -> float | None:
    """Seconds until it is worth asking again after ``error``; None when it is not."""
    passing = isinstance(error, ModelRateLimitError | ModelServerError | ModelUnavailableError | ModelConnectionError)
    if usual is None or not passing or isinstance(error, ModelTimeoutError):
        return None
    wait = max(usual, error.retry_after or 0)
    return wait if wait <= RETRY_WAITS[-1] else None


# --- connections ------------------------------------------------------------------------------------------


@asynccontextmanager
async def connect(agent: str, llm: str, base_url: str | None, api_key_env: str | None) -> AsyncIterator[Chat]:
    """A chat with ``llm``, whose connections are closed at the end; nothing of it outlives its event loop.

    Raises LLMError for a name, a key or a package that is missing or wrong.
    """
    from cleveragents.agents.llm.local import is_local, serve

    if is_local(llm):
        endpoint = await serve(agent, llm)
        async with _compatible(Asked(agent, llm), llm, endpoint.base_url, endpoint.key, local=True) as chat:
            yield chat
    elif base_url is not None:
        if fault := address_fault(base_url):
            # Without the address: it may hold a key.
            raise llm_error(agent, llm, f"its 'base_url' {fault}")
        provider, _, model = llm.partition(":") if ":" in llm else ("", "", llm)
        variable, key = _key(agent, llm, api_key_env, _usual_variable(provider))
        asked = Asked(agent, llm, base_url, variable, _secrets(key, base_url))
        async with _compatible(asked, model, base_url, key) as chat:
            yield chat
    else:
        if not all(llm.partition(":")):
            raise llm_error(agent, llm, NO_PROVIDER)
        variable, key = _key(agent, llm, api_key_env, None)
        asked = Asked(agent, llm, None, variable, _secrets(key, None))
        with telling(asked):
            model_of_provider = infer_model(llm, _keyed(key) if key else infer_provider)
        async with model_of_provider:
            yield Chat(model_of_provider, asked)


def _key(agent: str, llm: str, named: str | None, usual: str | None) -> tuple[str | None, str | None]:
    """The environment variable that holds the key, and the key; a variable that the agent names must be set."""
    for variable in (named, usual):
        if variable and (key := os.environ.get(variable, "").strip()):
            if not (key.isascii() and key.isprintable()):
                raise llm_error(agent, llm, f"the key in {variable} contains a character that no key has")
            return variable, key
        if named:
            raise llm_error(agent, llm, f"no key; set the environment variable {named}, which 'api_key_env' names")
    return None, None


def _usual_variable(provider: str) -> str:
    """The variable that a provider's key is usually in: OPENAI_API_KEY for ``openai``, ``openai-chat`` as well."""
    name = provider.removesuffix("-chat").removesuffix("-responses")
    return f"{name.upper().replace('-', '_')}_API_KEY"


def _secrets(key: str | None, base_url: str | None) -> tuple[str, ...]:
    secrets = [key] if key else []
    user, at, _ = urlsplit(base_url or "").netloc.rpartition("@")
    if at:
        password = user.partition(":")[2]
        secrets += [user, unquote(user), password, unquote(password), b64encode(unquote(user).encode()).decode()]
    return tuple(filter(None, secrets))


def _keyed(key: str) -> Any:
    """How pydantic-ai makes a provider, with a key that is not in the usual variable."""

    def provider(name: str) -> Provider[Any]:
        if name.startswith("gateway/"):
            from pydantic_ai.providers.gateway import gateway_provider

            return gateway_provider(name.removeprefix("gateway/"), api_key=key)
        return infer_provider_class(name)(api_key=key)  # type: ignore[call-arg]  # nearly every provider has it

    return provider


@asynccontextmanager
async def _compatible(
    asked: Asked, model: str, base_url: str, key: str | None, *, local: bool = False
) -> AsyncIterator[Chat]:
    """A chat with an OpenAI-compatible server."""
    hooks: dict[str, list[Any]] = {}
    if local:
        from cleveragents.agents.llm.reading import ASKED_FOR, telling_progress

        hooks["response"] = [telling_progress(asked.agent)]
    with telling(asked):
        client = _Client(
            timeout=httpx2.Timeout(_READ_SECONDS, connect=_CONNECT_SECONDS),
            # Making a TLS context takes longer than all the rest; loopback is never reached through a proxy.
            verify=not base_url.startswith("http:"),
            trust_env=not local,
            event_hooks=hooks,
        )
    async with client:
        with telling(asked):
            # Without a key a placeholder is sent: local servers need none, the library does.
            provider = OpenAICompatibleProvider(
                "openai-compatible", base_url=base_url, api_key=key, http_client=client, profile=_profile
            )
            settings = OpenAIChatModelSettings(extra_body=ASKED_FOR) if local else None
            chat = Chat(OpenAIChatModel(model, provider=provider, settings=settings), asked)
        yield chat


def _profile(_model: str) -> OpenAIModelProfile:
    """What is known of a server that may be any: it gets what the agent says, in the API's oldest form."""
    return OpenAIModelProfile(
        json_schema_transformer=OpenAIJsonSchemaTransformer,
        openai_chat_supports_max_completion_tokens=False,
        openai_chat_streaming_requires_finish_reason=True,
    )


class _Client(httpx2.AsyncClient):
    """A client for servers of any quality: error pages stay small, and a plain answer is as good as a stream.

    Without it, a server that cannot stream, or streams under another content type, could not be asked at all, and one
    that answers every path with a page of a login, however long, would be read to its end instead of told by its start.
    """

    async def send(self, request: httpx2.Request, *, stream: bool = False, **options: Any) -> httpx2.Response:
        response = await super().send(request, stream=stream, **options)
        if not stream:
            return response
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.is_error:
            return await _replaced(response, await _body(response, _LARGEST_ERROR_PAGE), kind or "text/plain")
        if kind == "text/event-stream":
            return response
        return await _replaced(response, _as_events(await _body(response, _LARGEST_PLAIN_ANSWER), kind))


async def _body(response: httpx2.Response, limit: int) -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > limit:
            break
    await response.aclose()
    return bytes(body[:limit])


async def _replaced(response: httpx2.Response, body: bytes, kind: str = "text/event-stream") -> httpx2.Response:
    headers = {
        name: value
        for name, value in response.headers.items()
        if name not in {"content-encoding", "content-length", "content-type", "transfer-encoding"}
    }
    return httpx2.Response(
        response.status_code, headers={**headers, "content-type": kind}, content=body, request=response.request
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
