import asyncio

from pytest_bdd import given, parsers, scenarios, then, when

from cleveragents import ContextManager, Message, ToolAgent
from cleveragents.errors import ToolError

scenarios("tool_agents.feature")

ENDINGS = {
    "runs in the sandbox": ("result = message", False),
    "runs unsafe, where asked for": ("result = message", True),
    "then fails": ("raise RuntimeError('out of paper')", False),
}


@given(parsers.parse('a tool that sets the writing stage to "{stage}" and {way}'), target_fixture="tool")
def tool(stage, way):
    ending, unsafe = ENDINGS[way]
    return ToolAgent("scribe", f'context["writing_stage"] = "{stage}"\n{ending}', unsafe=unsafe, time_limit=60)


@given(
    parsers.parse('a global context in which the writing stage is "{stage}" and the author is "{author}"'),
    target_fixture="shared",
)
def shared(stage, author):
    return {"writing_stage": stage, "author": author}


@when("the tool has worked on a message", target_fixture="reply")
def work(tool, shared):
    try:
        return asyncio.run(tool.process(Message("the text", shared)))
    except ToolError as error:
        return error


@when("the reply is merged into a saved context", target_fixture="root")
def merge(tmp_path, shared, reply):
    saved = ContextManager("essay", root=tmp_path)
    saved.update_global_context(shared)
    saved.update_global_context(reply.changes, reply.removed)
    return tmp_path


@then("its reply tells of the new writing stage and of nothing else")
def only_the_stage(reply):
    assert reply.content == "the text"
    assert (reply.changes, list(reply.removed)) == ({"writing_stage": "drafting"}, [])


@then(parsers.parse('the global context it was given still says "{stage}"'))
def untouched(shared, stage):
    assert shared == {"writing_stage": stage, "author": "Kim"}


@then(parsers.parse('the context on disk says "{stage}" when it is opened again, and the author is still "{author}"'))
def persisted(root, stage, author):
    again = ContextManager.open("essay", root=root)
    assert again.global_context == {"writing_stage": stage, "author": author}


@then("the tool has failed and there is no reply")
def failed(reply):
    assert isinstance(reply, ToolError)
    assert reply.reason == "RuntimeError: out of paper (line 2)"
    assert not hasattr(reply, "changes")
