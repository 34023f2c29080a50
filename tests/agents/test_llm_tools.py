"""An llm that calls tools: what they are handed, what they change, and what the llm is told."""

import asyncio
import json

import pytest

from cleveragents import LLMAgent, Message, Reply, ToolAgent, Usage
from cleveragents.agents.events import TextDelta, ToolCalled, ToolReturned
from cleveragents.agents.llm.agent import MAX_TOOL_ROUNDS
from cleveragents.values.merge import merged
from support.llms import ask, failure, text_of, told
from support.scripted_llm import calls, fails, hangs, says

COUNT = ToolAgent(
    "word_count",
    'context["words"] = len(message.split())\nresult = f"{context[\'words\']} words"',
    description="Count the words of a text.",
    time_limit=60,
)


@pytest.fixture
def agent(scripted_llm):
    """Makes agents with tools that ask the scripted server."""

    def make(*tools, **settings):
        return LLMAgent("planner", "openai:any", base_url=scripted_llm.url, tools=tools, **settings)

    return make


def results(scripted_llm, request=-1):
    """What the llm was told by tools in a request, by the id of the call."""
    messages = scripted_llm.requests[request]["messages"]
    return {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}


class Recorder:
    """An agent that is no ToolAgent: it says nothing of itself, and keeps what it was handed."""

    def __init__(self, name, reply=Reply("done")):  # noqa: B008 - a reply is never changed
        self.name = name
        self.reply = reply
        self.messages = []

    async def process(self, message):
        self.messages.append(message)
        return self.reply


def test_a_real_tool_is_called_and_its_changes_come_with_the_answer(scripted_llm, agent):
    scripted_llm.script(calls("word_count", {"message": "one two three"}), says("Three."))
    reply, events = told(agent(COUNT), "Count: one two three", {"kept": 1})
    assert reply == Reply("Three.", {"words": 3}, (), Usage(20, 10, 0, 2, "openai:any"))
    assert results(scripted_llm) == {"call_word_count_0": "3 words"}
    assert events == [
        ToolCalled("planner", "word_count", "call_word_count_0", {"message": "one two three"}),
        ToolReturned("planner", "word_count", "call_word_count_0", "3 words"),
        TextDelta("planner", "Three."),
    ]


def test_the_llm_is_told_what_each_tool_does_and_takes(scripted_llm, agent):
    parameters = {"city": {"type": "string"}, "unit": {"type": "string", "default": "C"}}
    weather = ToolAgent("weather", "result = input", description="The weather.", parameters=parameters)
    scripted_llm.script(says("ok"))
    ask(agent(COUNT, weather, Recorder("plain")))
    described = {tool["function"]["name"]: tool["function"] for tool in scripted_llm.requests[0]["tools"]}
    assert described["word_count"]["description"] == "Count the words of a text."
    assert described["word_count"]["parameters"]["properties"] == {"message": {"type": "string"}}
    assert described["word_count"]["parameters"]["required"] == ["message"]
    assert described["weather"]["parameters"]["properties"] == parameters
    assert described["weather"]["parameters"]["required"] == ["city"]
    assert described["plain"]["parameters"]["required"] == ["message"]


def test_a_tool_sees_its_arguments_the_message_and_the_context_so_far(scripted_llm, agent):
    tool = Recorder("tool")
    scripted_llm.script(
        says(calls=[("word_count", {"message": "a b"}), ("tool", {"n": 1})]), calls("tool", ""), says("ok")
    )
    message = Message("the question", {"kept": 1}, {"origin": "x"})
    asyncio.run(agent(COUNT, tool).process(message))
    assert tool.messages[0] == Message("the question", {"kept": 1, "words": 2}, {"origin": "x", "input": {"n": 1}})
    assert tool.messages[1].metadata == {"origin": "x", "input": {}}


def test_changes_of_several_rounds_add_up_with_removals(scripted_llm, agent):
    first = Recorder("first", Reply("1", {"a": {"x": 1}, "gone": 5}, ("old",), Usage(1, 1, 0, 1, "other")))
    second = Recorder("second", Reply("2", {"a": {"y": 2}}, ("gone",)))
    scripted_llm.script(calls("first", {}), calls("second", {}), says("ok"))
    context = {"old": 1, "a": {"z": 0}}
    reply = ask(agent(first, second), context=context)
    assert merged(context, reply.changes, reply.removed) == {"a": {"z": 0, "x": 1, "y": 2}}
    assert context == {"old": 1, "a": {"z": 0}}
    assert reply.usage == Usage(31, 16, 0, 4, "")


def test_c94_a_tool_that_fails_changes_nothing_and_the_llm_goes_on(scripted_llm, agent):
    broken = ToolAgent(
        "broken", 'context["a"] = 1\ncontext["items"].append(2)\nraise ValueError("no luck")', time_limit=60
    )
    scripted_llm.script(calls("broken", {"message": "x"}), calls("word_count", {"message": "x"}), says("Sorry."))
    reply, events = told(agent(broken, COUNT), context={"items": [1]})
    assert reply.content == "Sorry."
    assert reply.changes == {"words": 1}
    returned = [event for event in events if isinstance(event, ToolReturned)]
    assert [event.failed for event in returned] == [True, False]
    assert "no luck" in returned[0].content
    assert "\n" not in returned[0].content
    assert "no luck" in results(scripted_llm)["call_broken_0"]


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (calls("nobody", {}), "there is no tool 'nobody'; there are: word_count"),
        (calls("word_count", "{broken"), "the arguments cannot be read"),
        (calls("word_count", "[1]"), "the arguments cannot be read"),
        (calls("word_count", '{"message": NaN}'), "the arguments cannot be read"),
        (calls("word_count", '{"message": ' + "[" * 5000 + "]" * 5000 + "}"), "the arguments cannot be read"),
    ],
)
def test_a_call_that_makes_no_sense_is_answered_not_fatal(scripted_llm, agent, entry, text):
    scripted_llm.script(entry, says("I see."))
    reply, events = told(agent(COUNT))
    assert reply.content == "I see."
    (told_back,) = results(scripted_llm).values()
    assert text in told_back
    assert events[1].failed


@pytest.mark.parametrize(
    ("content", "text"), [(None, "[nothing]"), ({"n": [1, None]}, '{"n":[1,null]}'), ("a\udce9", "a\ufffd")]
)
def test_a_result_of_any_kind_reaches_the_llm_as_text(scripted_llm, agent, content, text):
    scripted_llm.script(calls("tool", {}), says("ok"))
    _, events = told(agent(Recorder("tool", Reply(content))))
    assert results(scripted_llm) == {"call_tool_0": text}
    assert events[1].content == content


def test_each_request_has_every_call_with_its_result_and_one_system_prompt(scripted_llm, agent):
    scripted_llm.script(
        says("Let me see.", calls=[("word_count", {"message": "a"}), ("word_count", {"message": "a b"})]),
        calls("word_count", {"message": "a b c"}),
        says("Done."),
    )
    reply, events = told(agent(COUNT, system_prompt="Words: {{ context.words | default('none') }}."))
    messages = scripted_llm.requests[2]["messages"]
    assert [message["role"] for message in messages] == [
        "system", "user", "assistant", "tool", "tool", "assistant", "tool",
    ]  # fmt: skip
    assert {json.dumps(request["messages"][0]) for request in scripted_llm.requests} == {
        '{"role": "system", "content": "Words: none."}'
    }
    assert [call["id"] for call in messages[2]["tool_calls"]] == [
        messages[3]["tool_call_id"],
        messages[4]["tool_call_id"],
    ]
    assert reply.content == text_of(events) == "Let me see.\n\nDone."


def test_an_llm_that_only_ever_calls_tools_is_stopped(scripted_llm, agent):
    scripted_llm.script(*[calls("tool", {})] * (MAX_TOOL_ROUNDS + 5))
    tool = Recorder("tool")
    assert f"called tools {MAX_TOOL_ROUNDS} times" in failure(agent(tool))
    assert len(tool.messages) == MAX_TOOL_ROUNDS
    assert len(scripted_llm.requests) == MAX_TOOL_ROUNDS + 1


def test_a_failure_between_two_rounds_is_met_by_asking_again_without_calling_the_tool_again(scripted_llm, agent):
    tool = Recorder("tool")
    scripted_llm.script(calls("tool", {}), fails(500), says("ok"))
    assert ask(agent(tool)).content == "ok"
    assert len(tool.messages) == 1


def test_cancelling_reaches_a_tool_that_works(scripted_llm, agent):
    async def cancelled():
        started = asyncio.Event()

        class Slow:
            name = "slow"
            ended = False

            async def process(self, _message):
                started.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    self.ended = True

        tool = Slow()
        task = asyncio.create_task(agent(tool).process(Message("What?")))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return tool.ended

    scripted_llm.script(calls("slow", {}), hangs)
    assert asyncio.run(cancelled())
    assert len(scripted_llm.requests) == 1
