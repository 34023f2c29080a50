"""What an llm is told of the calls of earlier turns."""

import asyncio

from pydantic_ai.messages import ToolReturnPart

from cleveragents import LLMAgent, Message, ToolAgent
from cleveragents.agents.llm.pydantic_messages import model_messages
from cleveragents.conversation.transcript import Step, ToolCall, Turn
from support.scripted_llm import calls, says

READ = ToolAgent("read", "raise ValueError('there is no such file')", time_limit=60)


class Remembered:
    """A conversation that holds what was kept in it."""

    def __init__(self):
        self.steps = []

    async def turns(self, _tokens, _turn_tokens):
        return [Turn("What is in a.txt?", (*self.steps, Step("I cannot say.")))] if self.steps else []

    def composed(self, prompt):
        return prompt

    async def keep(self, _agent, step):
        self.steps.append(step)


def test_a_call_that_failed_is_one_that_failed_in_later_turns():
    failed = ToolCall("c1", "read", {"path": "a.txt"}, "there is no such file", failed=True)
    done = ToolCall("c2", "count", {}, "3")
    messages = model_messages([Turn("What is in a.txt?", (Step("", (failed, done)), Step("I cannot say.")))])
    results = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    assert [(part.tool_call_id, part.content, part.outcome) for part in results] == [
        ("c1", "there is no such file", "failed"),
        ("c2", "3", "success"),
    ]


def test_an_llm_reads_of_a_failure_in_a_later_turn_what_it_read_at_once(scripted_llm):
    agent = LLMAgent("planner", "openai:any", base_url=scripted_llm.url, tools=[READ])
    conversation = Remembered()
    scripted_llm.script(calls("read", {"path": "a.txt"}), says("I cannot say."), says("I said so."))
    for question in ("What is in a.txt?", "And now?"):
        asyncio.run(agent.process(Message(question, conversation=conversation)))
    _, at_once, later = ([m for m in request["messages"] if m["role"] == "tool"] for request in scripted_llm.requests)
    assert "there is no such file" in at_once[0]["content"]
    assert later == at_once
