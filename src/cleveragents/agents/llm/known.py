"""What is known of llms by their names: what a request costs, and how many tokens fit into one."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from cleveragents.agents.llm.local import CONTEXT_TOKENS, is_local
from cleveragents.conversation.usage import Usage

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo
    from pydantic_ai.usage import RequestUsage

UNKNOWN_LIMIT = 16_000
"""Tokens that an llm is taken to hold, question and answer together, when nothing is known of it."""


def request_usage(llm: str, reported: RequestUsage) -> Usage:
    """What one request used and cost.

    Prices depend on the size of a request, so each is priced by itself. Some servers count cached tokens as part
    of the input and some beside it: here they are part of it.
    """
    cached = reported.cache_read_tokens + reported.cache_write_tokens
    if cached > reported.input_tokens:
        reported = replace(reported, input_tokens=reported.input_tokens + cached)
    used, answered = reported.input_tokens, reported.output_tokens
    return Usage(used, answered, reported.cache_read_tokens, 1, llm, _cost(llm, reported))


def _cost(llm: str, usage: RequestUsage) -> Decimal | None:
    """Dollars, by the prices that the package genai-prices knows; None for an llm that it does not know."""
    if is_local(llm):
        return Decimal(0)
    from genai_prices import calc_price

    provider, model = _provider_and_model(llm)
    if not (usage.input_tokens or usage.output_tokens):
        # Nothing was reported, which does not mean that nothing was used.
        return None
    try:
        return calc_price(usage, model, provider_id=provider).total_price
    except (LookupError, ValueError):
        return None


def token_limit(llm: str) -> int:
    """How many tokens fit into a request to ``llm``, answer included; UNKNOWN_LIMIT when nobody knows."""
    if is_local(llm):
        return CONTEXT_TOKENS
    model = _known(llm)
    return (model.context_window if model else None) or UNKNOWN_LIMIT


def _known(llm: str) -> ModelInfo | None:
    from genai_prices.data_snapshot import get_snapshot

    provider, model = _provider_and_model(llm)
    try:
        return get_snapshot().find_provider_model(model, None, provider, None)[1]
    except (LookupError, ValueError):
        return None


def _provider_and_model(llm: str) -> tuple[str, str]:
    provider, _, model = llm.partition(":") if ":" in llm else ("", "", llm)
    return provider.removesuffix("-chat").removesuffix("-responses") or "openai", model
