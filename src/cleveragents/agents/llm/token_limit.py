"""How many tokens fit into a request to an llm, as far as that is known by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cleveragents.agents.llm.local import CONTEXT_TOKENS, is_local
from cleveragents.agents.llm.prices import provider_and_model

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

UNKNOWN_LIMIT = 16_000
"""Tokens that an llm is taken to hold, question and answer together, when nothing is known of it."""


def token_limit(llm: str) -> int:
    """How many tokens fit into a request to ``llm``, answer included; UNKNOWN_LIMIT when nobody knows."""
    if is_local(llm):
        return CONTEXT_TOKENS
    model = _known(llm)
    return (model.context_window if model else None) or UNKNOWN_LIMIT


def _known(llm: str) -> ModelInfo | None:
    from genai_prices.data_snapshot import get_snapshot

    provider, model = provider_and_model(llm)
    try:
        return get_snapshot().find_provider_model(model, None, provider, None)[1]
    except (LookupError, ValueError):
        return None
