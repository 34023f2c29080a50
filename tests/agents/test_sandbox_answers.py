"""What leaves the sandbox is text, made inside its limits: nothing that is small inside grows outside."""

import asyncio
import resource
import sys

import pytest

from cleveragents.agents.tool.sandbox import evaluate
from cleveragents.errors import CodeError
from support.tools import call, failure, printed

DOUBLING = """
a = 'x' * 100
for _ in range(9):
    a = [a] * 10
"""
"""A few lists inside; a hundred gigabytes of text outside."""


def peak():
    """The most memory that this process has used, in megabytes."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used / (1_000_000 if sys.platform == "darwin" else 1_000)


GROWING = {
    "lists": DOUBLING + "result = a",
    "lists in the context": DOUBLING + "context['a'] = a",
    "the whole context": DOUBLING + "context = {'a': a}",
    "mappings": "a = 'x' * 100\nfor _ in range(9): a = {str(n): a for n in range(10)}\nresult = a",
    "tuples": "a = 'x' * 100\nfor _ in range(9): a = (a,) * 10\nresult = a",
    "keys": "k = 'k' * 7_000_000\nresult = [{k: 1}] * 10",
    "one long text many times": "result = ['x' * 7_000_000] * 1000",
    "values of the context": "context['old'] = [context['old']] * 1000\nresult = context",
    "what is escaped": "result = chr(1) * 7_000_000",
    "a default mapping": (
        "from collections import defaultdict\nd = defaultdict(list)\n" + DOUBLING + "d['a'] = a\nresult = d"
    ),
}


@pytest.mark.parametrize("code", GROWING.values(), ids=GROWING.keys())
def test_a_value_that_shares_its_parts_is_measured_as_it_would_be_stored(code):
    before = peak()
    assert failure(code, context={"old": "x" * 100_000}).endswith("larger than 8 MB")
    assert peak() < before + 30


@pytest.mark.parametrize(
    "code",
    [
        DOUBLING + "answer = lambda values: [a, a]\nresult = 1",
        DOUBLING + "def answer(values): return a\nresult = 1",
        DOUBLING + "__eval = __exec = __source = __names = values = answer = a\nresult = 1",
        DOUBLING + "for name in [*locals()]: exec(name + ' = a')\nresult = 1\ncontext = {}",
        DOUBLING + "type = len = str = isinstance = repr = dict = list = lambda *_: a\nresult = 1",
        DOUBLING + "json = datetime = date = Decimal = a\nresult = 1",
        DOUBLING + "result = 1\na",
    ],
)
def test_code_cannot_take_the_place_of_what_answers(code):
    before = peak()
    assert call(code).content == 1
    assert peak() < before + 30


def test_what_code_returns_outside_of_a_function_never_leaves():
    before = peak()
    assert failure(DOUBLING + "return a").startswith("SyntaxError: 'return' outside function (line 5)")
    assert peak() < before + 30


@pytest.mark.parametrize(
    "code",
    [
        DOUBLING + "class C:\n    def __repr__(self): return str(a)\nresult = {C(): 1}",
        DOUBLING + "class C:\n    def __str__(self): return str(a)\nresult = C()",
        DOUBLING + "class Decimal:\n    def is_finite(self): return a\nresult = Decimal()",
        DOUBLING + "class date:\n    def isoformat(self): return a\nresult = date()",
        DOUBLING + "raise ValueError(a)",
        DOUBLING + "raise ValueError(str(a))",
        "raise ValueError('x' * 20_000_000)",
        "raise KeyError('x' * 20_000_000)",
        DOUBLING + "assert not a",
        DOUBLING + "a()",
        DOUBLING + "{}[str(a)]",
        DOUBLING + "setattr(1, str(a), 2)",
    ],
)
def test_what_code_says_of_itself_is_short_and_its_own_methods_stay_in_the_limits(code):
    before = peak()
    assert len(failure(code, time_limit=2, memory_limit=64_000_000)) < 1_000
    assert peak() < before + 150  # the text of one exception crosses whole


def test_measuring_a_value_counts_as_time_of_its_code():
    assert failure("result = [[0] * 900] * 1000", time_limit=0.05) == "stopped at the time limit of 0.05 s"


def test_what_is_printed_is_kept_in_part():
    before = peak()
    outcome, text = printed("a = 'x' * 100\nfor _ in range(5): a = [a] * 10\nprint(a)\nresult = 1", time_limit=60)
    assert outcome.content == 1
    assert len(text) < 70_000
    assert text.endswith("more characters were cut\n")
    assert peak() < before + 30


@pytest.mark.parametrize(
    "expression",
    [
        "(a := message) and [a := [a] * 10 for _ in range(9)][-1]",
        "{'a': [[[[message] * 100] * 100] * 100] * 100}",
        "[message] * 1_000_000",
        "[[message] * 100 for answer in [[message] * 1000]] * 10_000",
    ],
)
def test_the_value_of_an_expression_is_measured_as_it_would_be_stored(expression):
    before = peak()
    with pytest.raises(CodeError, match=r"^value: larger than 8 MB$"):
        asyncio.run(evaluate(expression, {"message": "x" * 100}))
    assert peak() < before + 30


@pytest.mark.parametrize(
    "expression",
    [
        "(answer := lambda *_: [message] * 10_000_000) and [1]",
        "(short_answer := lambda *_: [message] * 10_000_000) and [1]",
        "(type := (len := lambda *_: 0)) and (list := 5) and (dict := 5) and [1]",
    ],
)
def test_an_expression_cannot_take_the_place_of_what_answers(expression):
    assert asyncio.run(evaluate(expression, {"message": "x"})) == [1]


def test_what_an_expression_smuggles_in_never_leaves():
    before = peak()
    expression = "1)\nif True: return ([message] * 1_000_000"
    assert asyncio.run(evaluate(expression, {"message": "x" * 100})) == 1
    assert peak() < before + 30
