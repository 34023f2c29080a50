"""How many tokens fit into a request to an llm, as far as that is known by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cleveragents.agents.llm.local import CONTEXT_TOKENS, is_local
from cleveragents.agents.llm.prices import provider_and_model

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo

UNKNOWN_LIMIT = 16_000
"""Tokens that an llm is taken to hold, question and answer together, when nothing is known of it."""

ROOMY_LIMIT = 200_000
"""Tokens that such an llm may hold all the same: only what goes beyond is shortened for it, its server knows better."""


def token_limit(llm: str) -> int:
    """How many tokens fit into a request to ``llm``, answer included; UNKNOWN_LIMIT when nobody knows."""
    return _known_limit(llm) or UNKNOWN_LIMIT


def roomy_limit(llm: str) -> int:
    """As ``token_limit``, but ROOMY_LIMIT when nobody knows: for what is not given up on a mere guess."""
    return _known_limit(llm) or ROOMY_LIMIT


def turn_tokens(llm: str) -> int:
    """How many tokens the texts of one turn may have in requests to ``llm``; the rest is for all else."""
    return roomy_limit(llm) * 3 // 4


def _known_limit(llm: str) -> int | None:
    if is_local(llm):
        return CONTEXT_TOKENS
    model = _known(llm)
    return model.context_window if model else None


def _known(llm: str) -> ModelInfo | None:
    from genai_prices.data_snapshot import get_snapshot

    provider, model = provider_and_model(llm)
    try:
        return get_snapshot().find_provider_model(model, None, provider, None)[1]
    except (LookupError, ValueError):
        return None
