"""What a tool sees, gives back and leaves alone, in the sandbox and outside of it."""

import asyncio
import copy
import subprocess
import sys
from types import MappingProxyType

import pytest

from cleveragents import Message, ToolAgent
from cleveragents.errors import InvalidSettingError, ToolError
from cleveragents.values.merge import merged
from support.tools import call, everywhere, failure, printed

CONTEXT = {"stage": "plan", "items": ["a"], "nested": {"keep": 1, "drop": 2}, "gone": None}


def after(reply, before):
    return merged(before, reply.changes, reply.removed)


@everywhere
class TestWhatCodeSees:
    @pytest.mark.parametrize("content", ["text", "", "Привет 🎉 \x00\n", {"a": [1, 2.5, None, True]}, [1], 7, None])
    def test_the_message_as_it_is(self, unsafe, content):
        assert call("result = message", content, unsafe=unsafe).content == content

    def test_the_arguments_an_llm_calls_it_with(self, unsafe):
        tool = ToolAgent("tool", "result = [input, input.get('city')]", unsafe=unsafe)
        reply = asyncio.run(tool.process(Message("", metadata={"input": {"city": "Oslo", "days": 3}})))
        assert reply.content == [{"city": "Oslo", "days": 3}, "Oslo"]

    def test_no_arguments_when_no_llm_calls_it(self, unsafe):
        assert call("result = input", unsafe=unsafe).content == {}

    def test_a_context_of_its_own(self, unsafe):
        context = copy.deepcopy(CONTEXT)
        call("context['items'].append('b')\ncontext['nested']['keep'] = 9", context=context, unsafe=unsafe)
        assert context == CONTEXT

    def test_a_context_that_cannot_be_changed(self, unsafe):
        context = MappingProxyType({"inner": MappingProxyType({"n": 1})})
        reply = call("context['inner']['n'] += 1", context=context, unsafe=unsafe)
        assert reply.changes == {"inner": {"n": 2}}

    def test_nothing_of_an_earlier_call(self, unsafe):
        call("left_behind = 1\nlen = None", unsafe=unsafe)
        assert "left_behind" in failure("result = left_behind", unsafe=unsafe)
        assert call("result = len('abc')", unsafe=unsafe).content == 3


@everywhere
class TestWhatCodeGivesBack:
    def test_without_a_result_nothing_flows_on(self, unsafe):
        assert call("x = 1", "text", unsafe=unsafe).content is None
        assert call("", "text", unsafe=unsafe).content is None
        assert call("# nothing", "text", unsafe=unsafe).content is None

    def test_changes_in_place(self, unsafe):
        code = """
context["stage"] = "draft"
context["items"].append("b")
context["nested"]["new"] = {"deep": [1]}
context["nested"].pop("drop")
context.pop("gone")
"""
        reply = call(code, context=CONTEXT, unsafe=unsafe)
        assert reply.changes == {"stage": "draft", "items": ["a", "b"], "nested": {"new": {"deep": [1]}}}
        assert sorted(reply.removed) == [("gone",), ("nested", "drop")]

    def test_changes_by_rebinding(self, unsafe):
        reply = call("context = {'only': 1}", context=CONTEXT, unsafe=unsafe)
        assert after(reply, CONTEXT) == {"only": 1}

    def test_setting_a_value_to_none_is_no_removal(self, unsafe):
        reply = call("context['stage'] = None", context=CONTEXT, unsafe=unsafe)
        assert (reply.changes, reply.removed) == ({"stage": None}, ())

    def test_leaving_the_context_alone_changes_nothing(self, unsafe):
        reply = call("context['stage'] = 'plan'", context=CONTEXT, unsafe=unsafe)
        assert (reply.changes, list(reply.removed)) == ({}, [])

    @pytest.mark.parametrize(("value", "kind"), [("None", "null"), ("[1]", "list"), ("'text'", "str")])
    def test_a_context_that_is_no_mapping_is_refused(self, unsafe, value, kind):
        reason = failure(f"context = {value}", context=CONTEXT, unsafe=unsafe)
        assert reason.startswith("context is a mapping of names to values")
        assert kind in reason

    def test_c95_prints_stay_apart_from_the_result(self, unsafe):
        reply, text = printed("print('{\"fake\": 1}')\nresult = {'true': 1}", unsafe=unsafe)
        assert reply.content == {"true": 1}
        assert text == '{"fake": 1}\n'

    def test_a_tool_that_fails_shows_what_it_printed(self, unsafe):
        error, text = printed("print('so far')\nraise ValueError('then')", unsafe=unsafe)
        assert isinstance(error, ToolError)
        assert text == "so far\n"

    def test_ten_megabytes_of_prints_are_cut_and_the_tool_goes_on(self, unsafe):
        reply, text = printed("for i in range(100):\n    print('x' * 100_000)\nresult = 'done'", unsafe=unsafe)
        assert reply.content == "done"
        assert text.startswith("x" * 65_536)
        assert len(text) < 65_600
        assert text.endswith("… 9,934,564 more characters were cut\n")

    def test_c32_braces_and_percents_and_dollars_are_left_alone(self, unsafe):
        for text in ["set A = {1; 2}", "{name}", "{{x}}", "%s %(a)s", "$HOME", "{{ context.x }}"]:
            assert call("context['t'] = message\nresult = message", text, unsafe=unsafe).content == text
            assert failure("raise ValueError(message)", text, unsafe=unsafe) == f"ValueError: {text} (line 1)"


@everywhere
class TestWhatFails:
    def test_the_kind_the_text_and_the_line_are_named(self, unsafe):
        code = "def f():\n    x = 1\n    raise ValueError('no luck')\n\nf()\n"
        assert failure(code, unsafe=unsafe) == "ValueError: no luck (line 3)"

    @pytest.mark.parametrize(("code", "line"), [("x = (", 1), ("x = 1\ny = = 2", 2), ("if True:\nx = 1", 2)])
    def test_a_syntax_error_names_the_line(self, unsafe, code, line):
        reason = failure(code, unsafe=unsafe)
        assert reason.startswith(("SyntaxError: ", "IndentationError: "))
        assert reason.endswith(f"(line {line})")

    def test_a_return_outside_of_a_function_is_not_taken_for_a_result(self, unsafe):
        assert failure("x = 1\nreturn x", unsafe=unsafe).startswith("SyntaxError: 'return' outside function (line 2)")
        assert call("def f():\n    return None\nresult = f()", unsafe=unsafe).content is None

    def test_an_error_of_many_lines_becomes_one_and_is_not_endless(self, unsafe):
        assert (
            failure("raise ValueError('one\\n  two\\r\\nthree')", unsafe=unsafe) == "ValueError: one two three (line 1)"
        )
        assert len(failure("raise ValueError('x' * 1_000_000)", unsafe=unsafe)) < 600

    def test_endless_recursion(self, unsafe):
        assert failure("def f():\n    return f()\n\nf()", unsafe=unsafe).startswith("RecursionError: ")

    @pytest.mark.parametrize(
        "code", ["while True:\n    pass", "try:\n    while True: pass\nexcept BaseException: pass"]
    )
    def test_a_loop_without_end(self, unsafe, code):
        assert failure(code, unsafe=unsafe, time_limit=1) == "stopped at the time limit of 1 s"

    def test_waiting_counts_as_time(self, unsafe):
        reason = failure("import time\ntime.sleep(3600)", unsafe=unsafe, time_limit=1)
        assert reason.startswith("stopped at the time limit of 1 s")

    def test_waiting_for_less_than_the_limit_is_no_failure(self, unsafe):
        assert call("import time\ntime.sleep(0.01)\nresult = 'rested'", unsafe=unsafe).content == "rested"

    def test_printing_without_end(self, unsafe):
        error, text = printed("while True:\n    print('x' * 1000)", unsafe=unsafe, time_limit=1)
        assert isinstance(error, ToolError)
        assert error.reason == "stopped at the time limit of 1 s"
        assert len(text) < 65_600

    @pytest.mark.parametrize(
        "code",
        [
            "x = []\nwhile True: x.append('a' * 1000)",
            "x = 'a' * 10**10",
            "x = 'a'\nwhile True: x += x",
            "x = 2\nwhile True: x = x * x",
            "x = {}\nwhile True: x[len(x)] = 'a' * 1000",
            "x = [0]\nwhile True: x.extend(x)",
            "x = b'a' * 10**10",
            "x = 'a'.ljust(10**10)",
            "x = list(range(10**10))",
            "x = ','.join(['a' * 10**6] * 10_000)",
        ],
    )
    def test_taking_too_much_memory(self, unsafe, code):
        reason = failure(code, unsafe=unsafe, memory_limit=64_000_000)
        assert reason.startswith("stopped at the memory limit of 64 MB")

    def test_the_memory_limit_is_the_agents_own(self, unsafe):
        code = "x = 'a' * 150_000_000\nresult = len(x)"
        assert call(code, unsafe=unsafe).content == 150_000_000
        assert failure(code, unsafe=unsafe, memory_limit=64_000_000).startswith("stopped at the memory limit of 64 MB")

    def test_the_call_after_a_limit_works(self, unsafe):
        failure("x = 'a' * 10**10", unsafe=unsafe)
        failure("while True: pass", unsafe=unsafe, time_limit=0.5)
        assert call("result = 1", unsafe=unsafe).content == 1

    def test_a_result_of_ten_megabytes_is_refused_with_the_limit(self, unsafe):
        assert failure("result = 'x' * 10_000_000", unsafe=unsafe) == "result: larger than 8 MB"
        assert call("result = 'x' * 7_999_900", unsafe=unsafe).content == "x" * 7_999_900

    def test_a_context_that_grew_too_large_is_refused_with_the_limit(self, unsafe):
        assert failure("context['log'] = ['x' * 1000] * 9000", unsafe=unsafe) == "context: larger than 8 MB"

    def test_a_value_that_holds_itself_again_and_again_is_refused_quickly(self, unsafe):
        code = "x = ['aaaa']\nfor i in range(60):\n    x = [x, x]\nresult = x"
        assert failure(code, unsafe=unsafe, time_limit=5).startswith(("result", "stopped at the"))

    def test_a_huge_message_or_context_is_refused_before_the_code_runs(self, unsafe):
        assert failure("print('ran')", "x" * 9_000_000, unsafe=unsafe) == "message: larger than 8 MB"
        assert failure("print('ran')", context={"k": "x" * 9_000_000}, unsafe=unsafe) == "context: larger than 8 MB"

    def test_a_context_of_many_thousand_values_comes_back(self, unsafe):
        context = {f"key {n}": {"n": n, "text": str(n), "list": [n, None]} for n in range(5000)}
        reply = call("context['key 7']['n'] = -1\nresult = len(context)", context=context, unsafe=unsafe)
        assert (reply.content, reply.changes, reply.removed) == (5000, {"key 7": {"n": -1}}, ())

    def test_c94_a_tool_that_fails_has_changed_nothing(self, unsafe):
        context = {"items": ["w"], "nested": {"list": [1]}, "b": 2}
        before = copy.deepcopy(context)
        code = """
context["a"] = 1
context["items"].append("x")
context["nested"]["list"].append(2)
context.pop("b")
raise ValueError("too late")
"""
        tool = ToolAgent("tool", code, unsafe=unsafe)
        message = Message("", context)
        with pytest.raises(ToolError):
            asyncio.run(tool.process(message))
        assert context == before
        assert message.context == before
        good = call("context['good'] = True", context=context, unsafe=unsafe)
        assert after(good, context) == before | {"good": True}

    @pytest.mark.parametrize(
        "code",
        [
            "raise SystemExit(0)",
            "raise SystemExit",
            "exit()",
            "quit()",
            "raise KeyboardInterrupt",
            "import sys\nsys.exit('x')",
        ],
    )
    def test_c92_an_exit_is_a_failed_tool_and_not_the_end_of_the_program(self, unsafe, code):
        reason = failure(code, unsafe=unsafe)
        assert "nternal error" not in reason
        assert call("result = 'still here'", unsafe=unsafe).content == "still here"


@everywhere
def test_many_calls_at_once_each_get_their_own_answer(unsafe):
    tool = ToolAgent("tool", "context['n'] = message\nresult = message * 2", unsafe=unsafe, time_limit=60)

    async def at_once():
        return await asyncio.gather(*(tool.process(Message(n, {"n": -1})) for n in range(20)))

    replies = asyncio.run(at_once())
    assert [(reply.content, reply.changes) for reply in replies] == [(n * 2, {"n": n}) for n in range(20)]


@pytest.mark.parametrize("limit", [0, -1, float("nan"), float("inf"), 1e9])
def test_a_time_limit_that_is_none_is_refused(limit):
    with pytest.raises(InvalidSettingError, match="time_limit"):
        ToolAgent("tool", "", time_limit=limit)


@pytest.mark.parametrize("limit", [0, -5])
def test_a_memory_limit_that_is_none_is_refused(limit):
    with pytest.raises(InvalidSettingError, match="memory_limit"):
        ToolAgent("tool", "", memory_limit=limit)


def test_a_tool_says_what_it_is():
    tool = ToolAgent("count", "result = 1", description="Counts.", parameters={"text": {"type": "string"}})
    assert (tool.name, tool.description, tool.parameters) == ("count", "Counts.", {"text": {"type": "string"}})
    assert not tool.unsafe


def test_making_a_tool_loads_no_sandbox_and_no_event_loop():
    code = (
        "import sys\nfrom cleveragents import ToolAgent\nToolAgent('t', 'result = 1')\n"
        "heavy = ('asyncio', 'pydantic_monty', 'subprocess', 'concurrent.futures', 'logging')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("value", ["'hot'", "True", "3", "[1]"])
def test_a_temperature_that_is_none_is_refused_when_it_is_set(value):
    agent = ToolAgent("setter", f"context['temperature'] = {value}")
    with pytest.raises(ToolError, match=r"the context's temperature .* between 0 and 2"):
        asyncio.run(agent.process(Message("x")))
    for fine in ("0", "0.5", "None"):
        asyncio.run(ToolAgent("setter", f"context['temperature'] = {fine}").process(Message("x")))
