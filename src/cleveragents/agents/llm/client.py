"""Requests to an llm through pydantic-ai: the connection, the answer as it arrives, and when to ask again."""

from __future__ import annotations

import asyncio
import json
import os
import time
import warnings
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from inspect import signature
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UserError,
)
from pydantic_ai.messages import ModelMessage, ModelResponse, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings
from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer, OpenAIModelProfile
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from cleveragents.agents.events import SettingLeftOut, tell
from cleveragents.agents.llm.errors import NO_PROVIDER, Asked, UnfinishedAnswerError, llm_error, meant_llm
from cleveragents.agents.llm.http_client import Client, http_client
from cleveragents.agents.llm.pydantic_messages import valid_calls
from cleveragents.config.rules import address_fault
from cleveragents.errors import LLMError

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.settings import ModelSettings

RETRY_WAITS = (0.5, 1.0)
"""Seconds before a question is asked again after a passing failure."""

LONGEST_WAIT = 60.0
"""Seconds up to which a server is obeyed that wants to be asked later, unless the agent has a ``max_wait``."""

WAITS_IN_ALL = 10
"""How many of its longest waits an answer may take in all."""

ANSWER_SECONDS = 1800.0
"""Seconds within which an answer has to be whole, unless the agent's ``timeout`` says otherwise."""

_BAD_REQUEST = 400
_NEW_MAX_TOKENS = "max_completion_tokens"
_NEW_NAME: set[tuple[str, str | None]] = set()
"""The llms, by name and address, that want the most tokens of an answer under the newer name."""

_ON_HTTPX2 = {"anthropic", "google"}
"""Providers beside those of OpenAI's library whose libraries take a client such as ours."""

_paused: dict[tuple[str, str | None], float] = {}
"""Until when a server wants to be left alone, by llm and address, on the monotonic clock: by all that ask it."""


class Chat:
    """A connection to one llm, for the requests of one answer. Made by ``connect``.

    ``unaccounted`` counts the requests that may have cost something and never said what: those that were broken off.
    """

    def __init__(self, model: Model, asked: Asked, client: Client, remake: Callable[[], Model] | None = None) -> None:
        self._model = model
        self._asked = asked
        self._client = client
        self._remake = remake
        self.unaccounted = 0

    async def stream(
        self,
        messages: Sequence[ModelMessage],
        settings: ModelSettings,
        parameters: ModelRequestParameters,
        max_wait: float | None = None,
    ) -> AsyncGenerator[str | ModelResponse]:
        """The answer's text piece by piece, then the whole response. Raises LLMError.

        A failure that may pass is met by asking again, as long as nothing of the answer has been handed out. A server
        that says when to ask again is obeyed when that is within ``max_wait`` seconds, by all who ask it.
        """
        settings = self._completed(settings)
        waits = iter(RETRY_WAITS)
        longest = LONGEST_WAIT if max_wait is None else max_wait
        patience = WAITS_IN_ALL * longest
        with telling(self._asked):
            while True:
                patience -= await self._pause(longest)
                started = False
                try:
                    async with aclosing(self._answer(messages, settings, parameters)) as pieces:
                        async for piece in pieces:
                            started = True
                            yield piece
                except ModelAPIError as error:
                    if started:
                        raise
                    if self._wants_other_name(error, settings):
                        continue
                    wished = _wished(error)
                    if wished is None:
                        wait = _usual_wait(error, waits)
                        if wait is None:
                            raise
                        await asyncio.sleep(wait)
                    elif wished > longest or wished > patience:
                        raise
                    else:
                        # A server that says 0 is not asked without end.
                        patience -= RETRY_WAITS[0]
                        _paused[self._place] = max(_paused.get(self._place, 0.0), time.monotonic() + wished)
                else:
                    return

    async def _answer(
        self, messages: Sequence[ModelMessage], settings: ModelSettings, parameters: ModelRequestParameters
    ) -> AsyncGenerator[str | ModelResponse]:
        """The answer to one request; what breaks it off leaves it unaccounted, unless the server refused it."""
        self.unaccounted += 1
        # It is told as an event; and a program that makes errors of warnings shall get its answer.
        warnings.filterwarnings("ignore", message="Sampling parameters .* are not supported", category=UserWarning)
        # What could not be counted is unknown, which is told as such.
        warnings.filterwarnings("ignore", message="Failed to extract usage")
        try:
            async with model_request_stream(
                self._model, messages, model_settings=settings, model_request_parameters=parameters
            ) as response:
                self._tell_what_was_left_out(settings)
                async for event in response:
                    if text := _text(event):
                        yield text
                whole = valid_calls(_finished(self._model, response.get()))
        except (UserError, ModelAPIError) as error:
            if _was_refused(error):
                self.unaccounted -= 1
            raise
        self.unaccounted -= 1
        yield whole

    def _tell_what_was_left_out(self, settings: ModelSettings) -> None:
        """Libraries leave a temperature out where they know that the llm takes none; the request shows whether."""
        if "temperature" in settings and self._client.sent is not None and not _has_temperature(self._client.sent):
            tell(SettingLeftOut(self._asked.agent, "temperature"))

    @property
    def _place(self) -> tuple[str, str | None]:
        return self._asked.llm, self._asked.address

    async def _pause(self, longest: float) -> float:
        """Wait until the server wants to be asked again; how many seconds that took."""
        begun = time.monotonic()
        # Another one may be told to wait longer meanwhile.
        while (rest := _paused.get(self._place, 0.0) - time.monotonic()) > 0:  # noqa: ASYNC110 - the clock tells
            await asyncio.sleep(min(rest, longest))
        return time.monotonic() - begun

    def _completed(self, settings: ModelSettings) -> ModelSettings:
        completed: ModelSettings = {"request_timeout": ANSWER_SECONDS, **settings}
        if "max_retries" not in self._model.unsupported_settings:
            # One place decides how often and how patiently to ask again.
            completed["max_retries"] = 0
        return completed

    def _wants_other_name(self, error: ModelAPIError, settings: ModelSettings) -> bool:
        """Whether the server wants ``max_tokens`` under its newer name, which is remembered and used from now on."""
        if self._remake is None or self._place in _NEW_NAME or "max_tokens" not in settings:
            return False
        if getattr(error, "status_code", None) != _BAD_REQUEST or _NEW_MAX_TOKENS not in str(error.body or error):
            return False
        _NEW_NAME.add(self._place)
        self._model = self._remake()
        return True


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


def _has_temperature(request: httpx2.Request) -> bool:
    body = json.loads(request.content)
    return "temperature" in body or "temperature" in body.get("generationConfig", {})


def _finished(model: Model, response: ModelResponse) -> ModelResponse:
    """``response``, if it came to its end; a stream that just stops is no answer. Raises UnfinishedAnswerError."""
    details = response.provider_details or {}
    ended = "finish_reason" in details or "refusal" in details
    # Where OpenAI's chat API gives no reason, pydantic-ai says that it stopped by itself.
    if ended or (response.finish_reason is not None and not isinstance(model, OpenAIChatModel)):
        return response
    raise UnfinishedAnswerError


def _was_refused(error: UserError | ModelAPIError) -> bool:
    """Whether there was no answer at all, for which nobody pays: an error's status, or no way to the server."""
    if isinstance(error, ModelTimeoutError):
        return False
    if isinstance(error, ModelConnectionError):
        return error.phase in {"connect", "pool"}
    return isinstance(error, UserError) or (getattr(error, "status_code", None) is not None and not error.in_stream)


def _wished(error: ModelAPIError) -> float | None:
    """Seconds after which the server wants to be asked again, if it says so."""
    if isinstance(error, ModelQuotaExceededError) or not isinstance(
        error, ModelRateLimitError | ModelServerError | ModelUnavailableError
    ):
        return None
    return None if error.retry_after is None else max(error.retry_after, 0.0)


def _usual_wait(error: ModelAPIError, waits: Iterator[float]) -> float | None:
    """Seconds until it is worth asking again after ``error``; None when it is not."""
    passing = isinstance(error, ModelRateLimitError | ModelServerError | ModelUnavailableError | ModelConnectionError)
    if not passing or isinstance(error, ModelTimeoutError | ModelQuotaExceededError):
        return None
    return next(waits, None)


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
        provider, model = _served(llm)
        variable, key = _key(agent, llm, api_key_env, _usual_variable(provider))
        asked = Asked(agent, llm, base_url, variable, _secrets(key, base_url))
        async with _compatible(asked, model, base_url, key) as chat:
            yield chat
    else:
        if not all(llm.partition(":")):
            raise llm_error(agent, llm, NO_PROVIDER)
        variable, key = _key(agent, llm, api_key_env, None)
        usual = _usual_variable(llm.partition(":")[0])
        asked = Asked(agent, llm, None, variable or (usual if usual in os.environ else None), _secrets(key, None))
        async with http_client() as client:
            with telling(asked):
                model_of_provider = infer_model(llm, _provider_maker(asked, key, client))
            async with model_of_provider:
                yield Chat(model_of_provider, asked, client)


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


def _served(llm: str) -> tuple[str, str]:
    """Whose key to use, and the name by which a server at an address of its own knows ``llm``.

    What stands before a colon is cut off only if there is a provider of that name: ``qwen3:8b`` is sent whole.
    """
    provider, colon, model = llm.partition(":")
    if not colon:
        return "", llm
    try:
        infer_provider_class(provider)
    except ImportError:
        pass  # its library is not installed, nor needed
    except ValueError:
        return provider, llm
    return provider, model


def _provider_maker(asked: Asked, key: str | None, client: Client) -> Callable[[str], Provider[Any]]:
    """How pydantic-ai makes a provider: with our client where it takes one, and ``key`` where one is given."""

    def provider(name: str) -> Provider[Any]:
        given: dict[str, Any] = {"api_key": key} if key else {}
        if name.startswith("gateway/"):
            from pydantic_ai.providers.gateway import gateway_provider

            return gateway_provider(name.removeprefix("gateway/"), **given)
        try:
            kind = infer_provider_class(name)
        except ValueError:
            raise llm_error(asked.agent, asked.llm, meant_llm(asked.llm)) from None
        if _takes_our_client(name, kind):
            given["http_client"] = client
        return kind(**given)

    return provider


def _takes_our_client(name: str, kind: type[Provider[Any]]) -> bool:
    # Some libraries want a client of the package httpx, of which httpx2 is the successor.
    parameters = signature(kind).parameters
    return "http_client" in parameters and ("openai_client" in parameters or name in _ON_HTTPX2)


@asynccontextmanager
async def _compatible(
    asked: Asked, model: str, base_url: str, key: str | None, *, local: bool = False
) -> AsyncIterator[Chat]:
    """A chat with an OpenAI-compatible server."""
    settings = None
    async with http_client() as client:
        if local:
            from cleveragents.agents.llm.reading import ASKED_FOR, telling_progress

            client.event_hooks = {"response": [telling_progress(asked.agent)]}
            settings = OpenAIChatModelSettings(extra_body=ASKED_FOR)

        def make() -> Model:
            newer = (asked.llm, asked.address) in _NEW_NAME
            # Without a key a placeholder is sent: local servers need none, the library does.
            provider = OpenAICompatibleProvider(
                "openai-compatible",
                base_url=base_url,
                api_key=key,
                http_client=client,
                profile=lambda _model: _profile(newer=newer),
            )
            return OpenAIChatModel(model, provider=provider, settings=settings)

        with telling(asked):
            chat = Chat(make(), asked, client, make)
        yield chat


def _profile(*, newer: bool) -> OpenAIModelProfile:
    """What is known of a server that may be any: it gets what the agent says, in the API's oldest form."""
    return OpenAIModelProfile(
        json_schema_transformer=OpenAIJsonSchemaTransformer,
        openai_chat_supports_max_completion_tokens=newer,
        openai_chat_streaming_requires_finish_reason=True,
    )
