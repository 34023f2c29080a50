"""Conditions and expressions of streams: what they see, what they may be worth, and how they fail."""

import asyncio
import datetime as dt
import decimal

import pytest

from cleveragents.agents.tool.sandbox import evaluate
from cleveragents.errors import CodeError

VARIABLES = {
    "message": "a draft of {braces}",
    "context": {"n": 3, "stage": "draft", "items": [1, {"deep": None}]},
    "metadata": {"route": "review", "hops": 2},
}


def value(expression, variables=None):
    return asyncio.run(evaluate(expression, VARIABLES if variables is None else variables))


def fault(expression, variables=None):
    with pytest.raises(CodeError) as caught:
        value(expression, variables)
    assert "\n" not in str(caught.value)
    assert caught.value.__suppress_context__ or not caught.value.__context__
    return str(caught.value)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("len(message) > 3 and context['n'] < 5", True),
        ("context.get('missing')", None),
        ("message.upper()", "A DRAFT OF {BRACES}"),
        ("metadata['hops'] + 0.5", 2.5),
        ("(message, context['n'])", ["a draft of {braces}", 3]),
        ("message, 1", ["a draft of {braces}", 1]),
        ("{**context, 'n': context['n'] + 1}", {"n": 4, "stage": "draft", "items": [1, {"deep": None}]}),
        ("[word for word in message.split() if len(word) > 2]", ["draft", "{braces}"]),
        ("\n  context['stage']  # with a remark\n", "draft"),
        ("context['items'][1]", {"deep": None}),
        ("'message'", "message"),
        ("(lambda text: text[::-1])('abc')", "cba"),
        ("(again := context['n']) * again", 9),
        ("f'{message!r:.5}'", "'a dr"),
        ("print('quiet') or 1", 1),
        ("[1, 'message'] if context else metadata", [1, "message"]),
        ("10 ** 4000", 10**4000),
    ],
)
def test_an_expression_has_the_value_it_has_in_python(expression, expected):
    assert value(expression) == expected


def test_variables_are_any_json_values():
    variables = {"message": (1, {"when": dt.date(2026, 1, 2), "cost": decimal.Decimal("1.50")})}
    assert value("message", variables) == [1, {"when": "2026-01-02", "cost": "1.50"}]
    assert fault("message", {"message": [1, {2}]}).startswith("message[1]: a value of type set")
    assert value("message", {"message": "caf\udce9"}) == "caf�"


def test_an_expression_cannot_change_what_others_see():
    variables = {"message": "x", "context": {"items": [1]}}
    assert value("context['items'].append(2) or context['items']", variables) == [1, 2]
    assert variables["context"] == {"items": [1]}
    assert value("context['items']", variables) == [1]


@pytest.mark.parametrize(
    "expression", ["", "  \n", "x = 1", "import os", "1\nimport os", "pass", "1 +", "*[1]", "a=1", "'"]
)
def test_what_is_no_expression_is_a_syntax_error(expression):
    assert fault(expression).startswith("SyntaxError: ")


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("mesage", "NameError: name 'mesage' is not defined"),
        ("message.x", "AttributeError: 'str' object has no attribute 'x'"),
        ("context['missing']", "KeyError: missing"),
        ("open('/etc/passwd').read()", "PermissionError: Permission denied: '/etc/passwd'"),
        ("__import__('os').system('id')", "NameError: name '__import__' is not defined"),
        ("().__class__.__base__", "AttributeError: 'tuple' object has no attribute '__class__'"),
        ("'{0.__class__}'.format(message)", "AttributeError: 'str' object has no attribute '__class__'"),
        ("lambda: 1", "value: a value of type function cannot be stored as JSON"),
        ("[0, {'f': len}]", "value[1].f: a value of type builtin_function_or_method cannot be stored as JSON"),
        ("{1, 2}", "value: a value of type set cannot be stored as JSON"),
        ("float('nan')", "value: nan cannot be stored as JSON"),
        ("{1: 2}", "value: the key 1 is not text"),
        ("10 ** 5000", "value: an integer of more than 4,300 digits cannot be stored"),
        ("'x' * 9_000_000", "value: larger than 8 MB"),
        ("'x' * 10 ** 12", "stopped at the memory limit of 256 MB"),
        ("[x for x in range(10 ** 10)]", "stopped at the memory limit of 256 MB"),
        ("[0 for _ in iter(lambda: [].append(1), 1) if False]", "stopped at the time limit of 5 s"),
    ],
)
def test_a_failure_is_one_line_that_says_why(expression, reason):
    assert fault(expression) == reason


def test_no_advice_is_given_that_would_not_help():
    assert "--unsafe" not in fault("open('x')")


def test_many_expressions_at_once_each_get_their_own_value():
    async def at_once():
        return await asyncio.gather(*(evaluate("message * 2", {"message": n}) for n in range(50)))

    assert asyncio.run(at_once()) == [n * 2 for n in range(50)]


def test_an_expression_that_fails_leaves_the_others_alone():
    async def at_once():
        expressions = ["message", "1 / 0", "message", "'x' * 10 ** 12", "message"]
        outcomes = (evaluate(expression, {"message": "m"}) for expression in expressions)
        return await asyncio.gather(*outcomes, return_exceptions=True)

    first, division, second, memory, third = asyncio.run(at_once())
    assert first == second == third == "m"
    assert isinstance(division, CodeError)
    assert isinstance(memory, CodeError)
