"""What goes wrong with an llm, in one line each: which agent, which llm, what happened, what to do.

Whatever a server says is foreign text: shortened, harmless on a terminal, and never shown with a key in it.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from cleveragents.errors import LLMError
from cleveragents.values.text import clean_text, terminal_text

EXTRAS = ("anthropic", "google", "groq", "mistral")
"""The extras of this package that bring a provider's library."""

NO_PROVIDER = "no such provider; use provider:model, such as openai:gpt-5-mini (also: local, gguf:PATH)"
EMPTY_ANSWER = "it gave an empty answer; ask again, or in other words"

_LOOKED_AT = 20_000  # characters of a server's text; what a key at its end leaves of itself is cut off with the rest
_SHOWN = 300
_SHORTEST_SECRET = 6
_WRONG_KEY = 401
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
_CREDENTIALS = re.compile(
    r"\b(?i:bearer|basic)\s+[\w.~+/=*-]{8,}"  # what an Authorization header says
    r"|\b(?:sk|pk|rk|gsk|xai|hf|ghp)[-_][\w.*-]{6,}|\bAIza[\w-]{10,}"  # keys of providers, masked ones too
    r"|\bey[\w-]{16,}\.[\w.-]+"  # tokens such as JSON Web Tokens
    r"|(?<=://)[^\s/@]+@"  # a URL's user and password
)
_VARIABLE = re.compile(r"[Ss]et (?:the |either )?`([A-Z][A-Z0-9_]+)`")
_PACKAGE = re.compile(r"pydantic-ai-slim\[([\w-]+)\]")


class UnreadableAnswerError(Exception):
    """A server answered with something that is not what was asked for; the text says what it is."""


class UnfinishedAnswerError(Exception):
    """A stream ended without saying that the answer is over."""


class FloodError(Exception):
    """A server sent more than an answer has; the text says of what."""


class MovedError(Exception):
    """A server sends on to another address, which is the text; it is not followed."""


class WayError(Exception):
    """There is no way to the server by what the environment says of proxies or certificates; the text says why."""


def llm_error(agent: str, llm: str, reason: str, *, temporary: bool = False) -> LLMError:
    """The error that ``llm`` gave ``agent``. Neither name nor reason reaches a terminal as anything but one line."""
    # A key may stand by mistake where the name belongs.
    name = _one_line(_CREDENTIALS.sub("***", llm))
    return LLMError(agent, f"llm {name}: {_one_line(reason, 4 * _SHOWN)}", temporary=temporary)


def meant_llm(llm: str) -> str:
    """What to say of a name that no provider has: providers are compared first, then the names of the one that is."""
    from difflib import get_close_matches

    from pydantic_ai.models import known_model_names

    provider, _, model = llm.partition(":")
    known = [name.partition(":")[::2] for name in known_model_names()]
    providers = {name for name, _ in known} | {"ollama"}
    if provider not in providers:
        near = get_close_matches(provider, sorted(providers), n=1, cutoff=0.7)
        return f"no such provider; did you mean {near[0]}:{model}?" if near else NO_PROVIDER
    near = get_close_matches(model, [name for of, name in known if of == provider], n=1)
    return f"{provider} has no such llm" + (f"; did you mean {provider}:{near[0]}?" if near else "; check its name")


@dataclass(frozen=True, slots=True)
class Asked:
    """Which llm was asked, and how; by this its errors are told."""

    agent: str
    llm: str
    address: str | None = None
    """The server's URL, where the agent names one."""
    key_variable: str | None = None
    """The environment variable that the key came from."""
    secrets: tuple[str, ...] = ()

    def error(self, error: Exception) -> LLMError:
        """``error``, raised by a request to the llm, as what happened and what to do about it."""
        reason = _without_secrets(self._reason(error), self.secrets)
        told = llm_error(self.agent, self.llm, reason, temporary=_may_pass(error))
        told.retry_after = getattr(error, "retry_after", None)
        return told

    def _reason(self, error: Exception) -> str:  # noqa: C901, PLR0911, PLR0912 - one flat table of cases
        from pydantic_ai import exceptions as ai

        server = f"the server at {_host(self.address)}" if self.address else "the server"
        key = f"the key in {self.key_variable}" if self.key_variable else "the key"
        status = getattr(error, "status_code", None)
        number = f" ({status})" if status else ""
        for cause in _causes(error):
            match cause:
                case FloodError():
                    return f"{server} sent {cause}, which is no answer; nothing of it is kept"
                case MovedError():
                    return (
                        f"{server} sends on to {self._shortened(str(cause))}; if that is right, write it as 'base_url'"
                    )
                case WayError():
                    return str(cause)
        match error:
            case ImportError():
                return self._missing_package(str(error))
            case ai.UserError():
                return self._misuse(str(error))
            case UnreadableAnswerError():
                return f"{server} gave an answer that is not of the OpenAI API: {self._shortened(str(error))}"
            case ai.ModelRequestTimeout():
                return f"no answer within {error.timeout:g} seconds; try again, or raise the agent's 'timeout'"
            case ai.ModelTimeoutError():
                return f"{server} did not answer in time; try again later"
            case ai.ModelAuthenticationError():
                # What comes with a 401 repeats the key, or parts of it.
                said = "" if status == _WRONG_KEY else self._said(error)
                return f"{server} refused {key}{number}; check it, and what it may be used for{said}"
            case ai.ModelNotFoundError():
                meant = getattr(error, "suggested_model_id", None)
                such = f" (did you mean {meant}?)" if meant else ""
                place = " and the address" if self.address else ""
                return f"{server} does not know this llm{number}; check its name{such}{place}{self._said(error)}"
            case ai.ModelQuotaExceededError():
                return f"the account's quota is used up{number}; see the provider's billing page{self._said(error)}"
            case ai.ModelRateLimitError():
                again = f"in {_duration(error.retry_after)}" if error.retry_after is not None else "later"
                return f"too many requests{number}; try again {again}{self._said(error)}"
            case ai.ModelContextWindowExceededError():
                return self._too_long(error)
            case ai.ModelUnavailableError() | ai.ModelServerError():
                return f"{server} failed{number}; try again later{self._said(error)}"
            case ai.ModelConnectionError():
                return self._unreachable(error, server)
            case ai.ModelAPIError() if "context size" in str(error.body or error):
                return self._too_long(error)
            case ai.ModelHTTPError():
                return f"{server} refused the request{number}{self._said(error)}"
            case UnfinishedAnswerError():
                return _broke_off(server)
            case ai.ModelAPIError() if "finish_reason" in error.message:
                return _broke_off(server)
            case ai.ModelAPIError() if "as JSON" in error.message:
                return f"{server} gave an answer that is not JSON: {self._shortened(error.message)}"
            case ai.ModelAPIError():
                return f"{server} failed while it answered; try again{self._said(error)}"
            case ai.UnexpectedModelBehavior() if "without content" in error.message:
                return EMPTY_ANSWER
        if type(error).__module__ in {"builtins", "pydantic_core._pydantic_core"}:
            return f"{server} gave an answer that cannot be understood ({type(error).__name__})"
        return f"it cannot be asked: {self._shortened(str(error) or type(error).__name__)}"

    def _missing_package(self, text: str) -> str:
        provider = self.llm.partition(":")[0]
        if provider in EXTRAS:
            return f"its library is not installed; run: pip install 'cleveragents[{provider}]'"
        package = _PACKAGE.search(text)
        return (
            f"its library is not installed; run: pip install 'pydantic-ai-slim[{package[1] if package else provider}]'"
        )

    def _misuse(self, text: str) -> str:
        """What is wrong with a name or a setting, from what pydantic-ai tells its own users."""
        if variable := _VARIABLE.search(text):
            if _SECRET_NAME.search(variable[1]):
                return f"no key; set the environment variable {variable[1]}, or name another one as 'api_key_env'"
            return f"its server is not known; set the environment variable {variable[1]}, or the agent's 'base_url'"
        if text.startswith("Unknown model"):
            return meant_llm(self.llm)
        return self._shortened(text)

    def _unreachable(self, error: Any, server: str) -> str:
        causes = list(_causes(error))
        if any(isinstance(cause, socket.gaierror) for cause in causes):
            return f"cannot find {server}; check the address and the network"
        if any(isinstance(cause, ssl.SSLError) for cause in causes):
            return f"no safe connection to {server}: {self._shortened(str(causes[-1]))}"
        if error.phase in {"connect", "pool"}:
            return f"cannot reach {server}; does it run, and is the address right?"
        return _broke_off(server)

    def _too_long(self, error: Any) -> str:
        return f"the conversation is longer than this llm can read; shorten it, or its history{self._said(error)}"

    def _said(self, error: Any) -> str:
        """What the server said, if it said anything, as the end of a sentence."""
        body = error.body
        if isinstance(body, dict):
            inner = body.get("error", body)
            body = (inner.get("message") if isinstance(inner, dict) else inner) or body
        text = self._shortened(str(error.message if body is None else body))
        if text.startswith("<"):
            return ""  # a page for people, made by what stands before the server
        return f". It said: {text}" if text else ""

    def _shortened(self, text: str) -> str:
        # Secrets go first: once the text is cut, half of one might be left.
        return _one_line(_without_secrets(text[:_LOOKED_AT], self.secrets))


def _may_pass(error: Exception) -> bool:
    """Whether the same request may succeed later: the server is busy, broken or not to be reached, or took too long."""
    from pydantic_ai import exceptions as ai

    match error:
        case ai.ModelConnectionError():
            return not any(isinstance(cause, ssl.SSLError) for cause in _causes(error))
        case ai.ModelRateLimitError() | ai.ModelServerError() | ai.ModelUnavailableError() | ai.ModelRequestTimeout():
            return True
    # A stream that ended before its answer did.
    return isinstance(error, UnfinishedAnswerError) or (
        isinstance(error, ai.ModelAPIError) and "finish_reason" in error.message
    )


def _duration(seconds: float) -> str:
    """``seconds`` in the largest unit that says it without being long-winded."""
    for unit, name in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds:g} seconds"


def _broke_off(server: str) -> str:
    return f"the connection to {server} broke off before the answer was whole; try again"


def _one_line(text: str, length: int = _SHOWN) -> str:
    text = terminal_text(clean_text(" ".join(text.split())))
    return text if len(text) <= length else text[: length - 1] + "…"


def _without_secrets(text: str, secrets: Iterable[str]) -> str:
    known = {*secrets, *_secrets_of_the_environment()}
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, "***")
    return _CREDENTIALS.sub("***", text)


def _secrets_of_the_environment() -> Iterator[str]:
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST_SECRET and _SECRET_NAME.search(name):
            yield value


def _host(address: str) -> str:
    """Scheme, host and port of a URL: the rest may hold secrets."""
    with suppress(ValueError):
        parts = urlsplit(address)
        return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
    return "its address"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """``error`` and what it came from."""
    seen: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        cause = waiting.pop()
        if cause is not None and cause not in seen:
            seen.append(cause)
            yield cause
            waiting += [cause.__context__, cause.__cause__]
            if isinstance(cause, BaseExceptionGroup):
                waiting += cause.exceptions
