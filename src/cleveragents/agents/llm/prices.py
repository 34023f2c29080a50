"""What a request to an llm used and cost, by the prices that are known of it by its name."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from cleveragents.agents.llm.chat_chunks import MAX_TOKENS
from cleveragents.agents.llm.local import is_local
from cleveragents.conversation.usage import Usage

if TYPE_CHECKING:
    from pydantic_ai.usage import RequestUsage


def request_usage(llm: str, reported: RequestUsage) -> Usage:
    """What one request used and cost.

    Prices depend on the size of a request, so each is priced by itself. Some servers count cached tokens as part
    of the input and some beside it: here they are part of it. What cannot be is not known.
    """
    counts = (reported.input_tokens, reported.output_tokens, reported.cache_read_tokens, reported.cache_write_tokens)
    if not all(isinstance(count, int) and 0 <= count <= MAX_TOKENS for count in counts):
        return unknown_usage(llm, 1)
    cached = reported.cache_read_tokens + reported.cache_write_tokens
    if cached > reported.input_tokens:
        reported = replace(reported, input_tokens=reported.input_tokens + cached)
    used, answered = reported.input_tokens, reported.output_tokens
    return Usage(used, answered, reported.cache_read_tokens, 1, llm, _cost(llm, reported), _reasoning(reported))


def _reasoning(reported: RequestUsage) -> int:
    """Tokens of the output in which the llm thought; providers do not agree on what to call them."""
    details = (reported.details.get(name, 0) for name in ("reasoning_tokens", "thoughts_tokens"))
    counts = [count for count in (reported.output_reasoning_tokens, *details) if isinstance(count, int)]
    return min(max(0, *counts), reported.output_tokens)


def unknown_usage(llm: str, requests: int) -> Usage:
    """What ``requests`` used that were broken off: nobody knows, but that ``local`` costs nothing."""
    return Usage(requests=requests, llm=llm, cost=Decimal(0) if is_local(llm) else None)


def _cost(llm: str, usage: RequestUsage) -> Decimal | None:
    """Dollars, by the prices that the package genai-prices knows; None for an llm that it does not know."""
    if is_local(llm):
        return Decimal(0)
    from genai_prices import calc_price

    provider, model = provider_and_model(llm)
    if not (usage.input_tokens or usage.output_tokens):
        # Nothing was reported, which does not mean that nothing was used.
        return None
    try:
        return calc_price(usage, model, provider_id=provider).total_price
    except (LookupError, ValueError):
        return None


def provider_and_model(llm: str) -> tuple[str, str]:
    """The two names by which the package genai-prices knows ``llm``."""
    provider, _, model = llm.partition(":") if ":" in llm else ("", "", llm)
    return provider.removesuffix("-chat").removesuffix("-responses") or "openai", model
