"""What a request costs and how much fits into one, by the name of the llm."""

from decimal import Decimal

import pytest
from genai_prices import types
from genai_prices.data_snapshot import DataSnapshot, set_custom_snapshot
from pydantic_ai.usage import RequestUsage

from cleveragents.agents.llm.prices import request_usage
from cleveragents.agents.llm.token_limit import ROOMY_LIMIT, UNKNOWN_LIMIT, token_limit, turn_tokens
from cleveragents.conversation.usage import Usage


@pytest.fixture
def prices():
    """One provider with one llm, whose prices a head can reckon with."""
    price = types.ModelPrice(input_mtok=Decimal(1), cache_read_mtok=Decimal("0.1"), output_mtok=Decimal(4))
    model = types.ModelInfo(id="known", match=types.ClauseEquals("known"), prices=price, context_window=50_000)
    provider = types.Provider(id="openai", name="OpenAI", api_pattern="none", models=[model])
    set_custom_snapshot(DataSnapshot(providers=[provider], from_auto_update=False))
    yield
    set_custom_snapshot(None)


@pytest.mark.parametrize("reported", [1000, 200], ids=["within the input", "beside the input"])
def test_c52_cached_tokens_are_counted_and_paid_once_however_they_are_reported(prices, reported):
    used = request_usage("openai:known", RequestUsage(input_tokens=reported, cache_read_tokens=800, output_tokens=50))
    assert used == Usage(1000, 50, 800, 1, "openai:known", Decimal("0.00048"))


def test_c53_an_unknown_price_is_unknown_and_so_is_every_sum_with_it(prices):
    reported = RequestUsage(input_tokens=10, output_tokens=5)
    for llm in ("openai:acme-9", "acme:known", "known9"):
        assert request_usage(llm, reported).cost is None
    known = request_usage("openai:known", reported)
    assert known.cost == Decimal("0.00003")
    assert (known + known).cost == Decimal("0.00006")
    assert (known + request_usage("openai:acme-9", reported)).cost is None


def test_what_reports_nothing_is_not_taken_for_free(prices):
    assert request_usage("openai:known", RequestUsage()).cost is None


@pytest.mark.parametrize("llm", ["local", "gguf:/some/file.gguf"])
def test_an_llm_on_this_machine_costs_nothing(llm):
    assert request_usage(llm, RequestUsage(input_tokens=10, output_tokens=5)).cost == 0


def test_how_much_fits_into_a_request(prices):
    assert token_limit("openai:known") == 50_000
    assert token_limit("openai-chat:known") == 50_000
    assert token_limit("openai:acme-9") == UNKNOWN_LIMIT
    assert token_limit("local") == 8192
    assert turn_tokens("openai:known") == 37_500
    assert turn_tokens("openai:acme-9") == ROOMY_LIMIT * 3 // 4
    assert turn_tokens("local") == 6144


@pytest.mark.parametrize(("asked", "answered"), [(10**30, 5), (5, -1)])
def test_usage_that_cannot_be_is_unknown(prices, asked, answered):
    reported = RequestUsage(input_tokens=asked, output_tokens=answered)
    assert request_usage("openai:known", reported) == Usage(requests=1, llm="openai:known", cost=None)


@pytest.mark.parametrize(
    "more",
    [{"output_reasoning_tokens": 30}, {"details": {"reasoning_tokens": 30}}, {"details": {"thoughts_tokens": 30}}],
)
def test_tokens_of_reasoning_are_counted_whatever_a_provider_calls_them(prices, more):
    assert request_usage("openai:known", RequestUsage(output_tokens=50, **more)).reasoning_tokens == 30
