"""What values a tool may see and leave: one rule for messages, arguments, results and the context."""

import asyncio

import pytest

from cleveragents import Message, ToolAgent
from cleveragents.errors import ToolError
from support.tools import call, everywhere, failure


@everywhere
def test_c34_a_value_that_is_not_json_follows_one_rule_in_messages_arguments_results_and_context(unsafe):
    code = """
from datetime import date, datetime, time, timezone
from decimal import Decimal
values = [datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc), date(2026, 1, 2), time(3, 4), Decimal("1.50"), (1, (2,))]
context["values"] = values
result = values
"""
    expected = ["2026-01-02T03:04:05+00:00", "2026-01-02", "03:04:00", "1.50", [1, [2]]]
    reply = call(code, unsafe=unsafe)
    assert reply.content == expected
    assert reply.changes == {"values": expected}
    for value in ["b'x'", "{1}", "frozenset([1])", "float('nan')", "float('inf')", "1j"]:
        assert failure(f"result = {value}", unsafe=unsafe).startswith("result: ")
        assert failure(f"context['k'] = [0, {value}]", unsafe=unsafe).startswith("context.k[1]: ")


@pytest.mark.parametrize("value", [b"x", {1}, float("nan"), object()], ids=["bytes", "set", "nan", "object"])
def test_c34_a_value_that_is_not_json_never_reaches_the_code(value):
    assert failure("", value).startswith("message: ")
    assert failure("", context={"k": [value]}).startswith("context.k[0]: ")
    with pytest.raises(ToolError, match=r"agent tool: input\.k: "):
        asyncio.run(ToolAgent("tool", "").process(Message("", metadata={"input": {"k": value}})))


@everywhere
def test_c37_a_tool_sees_the_types_that_it_would_see_after_a_reload(unsafe):
    context = {"pair": (1, 2), "nested": {"t": ((),)}}
    code = "result = [type(context['pair']).__name__, type(context['nested']['t'][0]).__name__]"
    reply = call(code, context=context, unsafe=unsafe)
    assert reply.content == ["list", "list"]
    assert (reply.changes, list(reply.removed)) == ({}, [])


@everywhere
def test_c37_nothing_is_merged_or_lost_without_a_word(unsafe):
    assert failure("context[1] = 'a'\ncontext['1'] = 'b'", unsafe=unsafe) == "context: the key 1 is not text"
    assert failure("context['seen'] = {3}", unsafe=unsafe).startswith("context.seen: ")
    assert failure("result = {None: 1}", unsafe=unsafe) == "result: the key None is not text"
    code = "from collections import defaultdict\nd = defaultdict(list)\nd['k'].append(1)\ncontext['d'] = d"
    assert call(code, unsafe=unsafe).changes == {"d": {"k": [1]}}


OBJECTS = [
    "lambda: 1",
    "len",
    "print",
    "range(3)",
    "iter([])",
    "{}.items()",
    "...",
    "ValueError('x')",
    "ValueError",
    "C",
    "C()",
    "f",
]


@everywhere
@pytest.mark.parametrize("value", OBJECTS)
def test_c38_an_object_is_refused_by_its_path_and_no_text_stands_in_for_it(unsafe, value):
    code = f"class C:\n    pass\n\ndef f():\n    pass\n\nvalue = {value}\n"
    assert failure(code + "result = value", unsafe=unsafe).startswith("result: a value of type ")
    assert failure(code + "context['client'] = value", unsafe=unsafe).startswith("context.client: a value of type ")
    deep = failure(code + "context['items'] = [0, {'fn': value}]", unsafe=unsafe)
    assert deep.startswith("context.items[1].fn: a value of type ")
    assert deep.endswith("cannot be stored as JSON")


@everywhere
def test_c38_text_that_looks_like_an_object_is_text(unsafe):
    assert call("result = str(len)", unsafe=unsafe).content.startswith("<built-in function len>")


@everywhere
def test_c38_names_of_builtins_used_as_variables_hide_nothing(unsafe):
    names = [
        "type",
        "str",
        "bool",
        "int",
        "float",
        "dict",
        "list",
        "tuple",
        "isinstance",
        "enumerate",
        "len",
        "repr",
        "Exception",
    ]
    code = "".join(f"{name} = None\n" for name in names)
    assert failure(code + "result = [lambda: 1]", unsafe=unsafe).startswith("result[0]: a value of type function")
    assert call(code + "result = [1, 'a', {'b': 2.5}]", unsafe=unsafe).content == [1, "a", {"b": 2.5}]


@everywhere
def test_c25_text_that_is_not_unicode_is_cleaned_where_it_enters(unsafe):
    assert call("result = ['\\ud800x', {'\\udce9': 1}]", unsafe=unsafe).content == ["�x", {"�": 1}]
    assert call("result = message", "caf\udce9", unsafe=unsafe).content == "caf�"
    stored = failure("raise ValueError('bad ' + message)", "caf\udce9", unsafe=unsafe)
    assert stored == "ValueError: bad caf� (line 1)"
    for _ in range(3):
        stored = failure("raise ValueError(message)", stored, unsafe=unsafe)
    assert len(stored) < 200


@everywhere
def test_numbers_keep_their_kind_and_their_size(unsafe):
    values = [0, -0.0, 1.0, 1, True, 2**53 + 1, 10**4000, 1e308, 5e-324]
    reply = call("context['n'] = message\nresult = message", values, unsafe=unsafe)
    assert [repr(value) for value in reply.content] == [repr(value) for value in values]
    assert (
        failure("result = 10**5000", unsafe=unsafe) == "result: an integer of more than 4,300 digits cannot be stored"
    )


@everywhere
def test_nesting_has_an_end(unsafe):
    deep = "x = []\nfor i in range({}):\n    x = [x]\nresult = x"
    assert call(deep.format(150), unsafe=unsafe).content
    for endless in [deep.format(100_000), "x = []\nx.append(x)\nresult = x", "context['self'] = context"]:
        assert failure(endless, unsafe=unsafe).endswith("nested deeper than 200 levels")
