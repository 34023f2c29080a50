"""One turn of an application on a named context: what is kept, whatever becomes of the run."""

import asyncio

import pytest

from cleveragents import AppConfig, CleverAgentsApp, ContextManager
from cleveragents.agents.events import TextDelta
from cleveragents.errors import (
    ContextBusyError,
    ContextNotFoundError,
    InvalidSettingError,
    LLMError,
    NoOutputError,
    ToolError,
)
from support.scripted_llm import cuts, fails, hangs, says


@pytest.fixture
def context(tmp_path):
    return ContextManager("talk", root=tmp_path)


def network(*tools, **more):
    """A chain of tools, each given by its code."""
    names = [f"tool{number}" for number in range(len(tools))]
    return AppConfig.model_validate(
        {
            "agents": {name: {"type": "tool", "code": code} for name, code in zip(names, tools, strict=True)},
            "routes": {"all": {"from": "input", "through": names, "to": "output"}},
            **more,
        }
    )


@pytest.fixture
def asking(scripted_llm):
    """An application with one llm agent on the scripted server."""

    def make(**settings):
        agent = {"type": "llm", "llm": "openai:any", "base_url": scripted_llm.url, **settings}
        return CleverAgentsApp(AppConfig.model_validate({"agents": {"assistant": agent}}))

    return make


def said(context):
    return [(message.role, message.content) for message in context.messages]


def test_the_question_is_on_disk_before_an_agent_runs(context, asking, scripted_llm):
    seen = []

    def look(exchange):
        seen.extend(said(ContextManager.open("talk", root=context.directory.parent)))
        says("Paris.")(exchange)

    scripted_llm.script(look)
    asking().run_sync("Capital of France?", context=context)
    assert seen == [("user", "Capital of France?")]
    assert said(context) == [("user", "Capital of France?"), ("assistant", "Paris.")]


def test_an_answer_that_is_cut_off_is_kept_and_marked_and_the_next_run_knows(context, asking, scripted_llm):
    app = asking()
    scripted_llm.script(says(["It is ", "Par"], then=cuts))
    with pytest.raises(LLMError):
        app.run_sync("Capital?", context=context)
    assert said(context) == [("user", "Capital?"), ("assistant", "It is Par")]
    assert context.messages[1].metadata["interrupted"] is True
    scripted_llm.script(says("Paris."))
    app.run_sync("Again?", context=context)
    assert "assistant: It is Par [interrupted]" in scripted_llm.requests[-1]["messages"][-1]["content"]


def test_a_cancelled_run_keeps_what_had_arrived(context, asking, scripted_llm):
    scripted_llm.script(says(["One, ", "two"], then=hangs))
    heard = asyncio.Event()
    pieces = []

    def listen(event):
        pieces.append(event)
        if len([piece for piece in pieces if isinstance(piece, TextDelta)]) == 2:
            heard.set()

    async def cancelled():
        task = asyncio.create_task(asking().run("Count.", context=context, listener=listen))
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert said(context) == [("user", "Count."), ("assistant", "One, two")]
    assert scripted_llm.departures.acquire(timeout=10)


def test_c103_a_failed_question_asked_again_is_open_once(context, asking, scripted_llm):
    app = asking()
    scripted_llm.script(fails(400, "broken"))
    with pytest.raises(LLMError):
        app.run_sync("Capital?", context=context)
    scripted_llm.script(says("Paris."))
    app.run_sync("Capital?", context=context)
    assert [message["content"] for message in scripted_llm.requests[-1]["messages"]] == ["Capital?"]
    assert said(context) == [("user", "Capital?"), ("user", "Capital?"), ("assistant", "Paris.")]


def test_changes_made_before_another_agent_fails_are_kept(context):
    app = CleverAgentsApp(network('context["plan"] = {"steps": 3}; result = message', "context['x'] = 1; 1 / 0"))
    with pytest.raises(ToolError):
        app.run_sync("go", context=context)
    assert context.global_context == {"plan": {"steps": 3}}
    assert said(context) == [("user", "go")]


def test_what_was_saved_wins_over_the_file_key_by_key(context):
    context.update_global_context({"style": {"tone": "dry"}, "extra": 1})
    config = network("result = context", context={"style": {"tone": "warm", "length": "short"}, "kind": "letter"})
    output = CleverAgentsApp(config).run_sync("go", context=context).output
    assert output == {"style": {"tone": "dry", "length": "short"}, "kind": "letter", "extra": 1}
    assert context.global_context == {"style": {"tone": "dry"}, "extra": 1}


def test_removed_keys_stay_removed(context):
    context.update_global_context({"old": 1, "nested": {"a": 1, "b": 2}})
    app = CleverAgentsApp(network('context.pop("old"); context["nested"].pop("a"); result = "done"'))
    app.run_sync("go", context=context)
    assert context.global_context == {"nested": {"b": 2}}


def test_a_temperature_from_an_earlier_run_is_seen_and_an_override_is_not_saved(context):
    context.update_global_context({"temperature": 0.1})
    config = network('context["seen"] = context.get("temperature"); result = "done"')
    CleverAgentsApp(config, temperature=0).run_sync("go", context=context)
    assert context.global_context == {"temperature": 0.1, "seen": 0}
    CleverAgentsApp(config).run_sync("go", context=context)
    assert context.global_context["seen"] == 0.1


@pytest.mark.parametrize(("own", "override", "sent"), [(0.9, 0, 0), (0, None, 0), (0.9, None, 0.9), (None, 1.5, 1.5)])
def test_c107_the_temperature_that_is_sent(asking, scripted_llm, own, override, sent):
    scripted_llm.script(says("ok"))
    config = asking(temperature=own).config
    CleverAgentsApp(config, temperature=override).run_sync("go")
    assert scripted_llm.requests[0]["temperature"] == sent


@pytest.mark.parametrize("temperature", [-0.1, 2.1, float("nan"), float("inf"), True, "hot"])
def test_a_temperature_out_of_range_is_refused_before_anything_runs(temperature):
    with pytest.raises(InvalidSettingError, match="temperature"):
        CleverAgentsApp(network("result = 1"), temperature=temperature)


def test_one_turn_at_a_time(context):
    app = CleverAgentsApp(network("result = message"))
    other = ContextManager.open("talk", root=context.directory.parent)
    with other.turn(0), pytest.raises(ContextBusyError, match="talk"):
        app.run_sync("go", context=context, wait=0)
    assert said(context) == []
    app.run_sync("go", context=context, wait=0)
    assert len(said(context)) == 2


def test_a_second_run_waits_for_the_first(context):
    app = CleverAgentsApp(network("result = message"))

    async def both():
        turn = context.turn(0)
        turn.__enter__()
        second = asyncio.create_task(app.run("go", context=context))
        await asyncio.sleep(0)
        assert said(context) == []
        turn.__exit__(None, None, None)
        return await second

    assert asyncio.run(both()).output == "go"


def test_a_turn_that_ends_after_its_context_was_deleted_says_so(context, asking, scripted_llm):
    def delete(exchange):
        ContextManager.open("talk", root=context.directory.parent).delete()
        says("Paris.")(exchange)

    scripted_llm.script(delete)
    with pytest.raises(ContextNotFoundError, match="the answer could not be kept: context 'talk' was deleted"):
        asking().run_sync("Capital?", context=context)
    assert not context.directory.exists()


@pytest.mark.parametrize("prompt", ["", "  \n"])
def test_an_empty_prompt_is_refused(context, prompt):
    with pytest.raises(InvalidSettingError, match="prompt"):
        CleverAgentsApp(network("result = 1")).run_sync(prompt, context=context)
    assert said(context) == []


def test_a_prompt_too_large_for_later_runs_is_refused_before_it_is_stored(context):
    app = CleverAgentsApp(network("result = str(len(message))"))
    with pytest.raises(InvalidSettingError, match="2,000,001 bytes"):
        app.run_sync("x" * 2_000_001, context=context)
    assert said(context) == []
    for _ in range(3):
        assert int(app.run_sync("\n" + "x" * 1_999_999, context=context).output) < 3_100_000


def test_an_answer_that_cannot_be_kept_is_handed_over_with_the_error(context, asking, scripted_llm):
    def delete(exchange):
        ContextManager.open("talk", root=context.directory.parent).delete()
        says("Paris.")(exchange)

    scripted_llm.script(delete)
    with pytest.raises(ContextNotFoundError) as caught:
        asking().run_sync("Capital?", context=context)
    assert caught.value.result.output == "Paris."


@pytest.mark.parametrize("llm", ["", "nonsense", "gguf:", "sk-abcdefghijklmnop1234"])
def test_another_llm_is_checked_before_anything_runs(llm):
    with pytest.raises(InvalidSettingError) as caught:
        CleverAgentsApp(network("result = 1"), llm=llm)
    assert "sk-abc" not in str(caught.value)


def test_every_output_is_kept(context):
    config = AppConfig.model_validate(
        {
            "agents": {
                "a": {"type": "tool", "code": "result = 'A'"},
                "b": {"type": "tool", "code": "result = {'b': 1}"},
            },
            "routes": {
                "a": {"from": "input", "through": ["a"], "to": "output"},
                "b": {"from": "input", "through": ["b"], "to": "output"},
            },
        }
    )
    CleverAgentsApp(config).run_sync("go", context=context)
    assert sorted(said(context)) == [("assistant", "A"), ("assistant", '{"b":1}'), ("user", "go")]


def test_c101_a_run_without_output_names_the_agent_that_said_nothing(context):
    with pytest.raises(NoOutputError, match="tool0"):
        CleverAgentsApp(network("pass")).run_sync("go", context=context)


def test_c25_undecodable_bytes_of_a_tool_are_cleaned_once(context):
    unsafe = network('result = b"caf\\xe9".decode("utf-8", "surrogateescape")')
    for _ in range(3):
        CleverAgentsApp(unsafe, unsafe=True).run_sync("go", context=context)
    failing = network('raise ValueError(b"caf\\xe9".decode("utf-8", "surrogateescape"))')
    with pytest.raises(ToolError, match="caf\ufffd"):
        CleverAgentsApp(failing, unsafe=True).run_sync("go", context=context)
    assert [content for role, content in said(context) if role == "assistant"] == ["caf\ufffd"] * 3


def test_c47_exactly_one_system_prompt_the_current_one(context, asking, scripted_llm):
    scripted_llm.script(*(says(f"Answer {number}.") for number in range(30)), says("Oui."), says("Ja."))
    french = asking(system_prompt="Answer in French.")
    for number in range(30):
        french.run_sync(f"Question {number}?", context=context)
    french.run_sync("Last?", context=context)
    asking(system_prompt="Answer in German.").run_sync("More?", context=context)
    for request, prompt in zip(scripted_llm.requests[-2:], ["Answer in French.", "Answer in German."], strict=True):
        assert [message["role"] for message in request["messages"]] == ["system", "user"]
        assert request["messages"][0]["content"] == prompt
        assert "in French" not in request["messages"][1]["content"]


ROUTES = {
    "one agent": ({}, "a"),
    "a chain": ({"r": {"from": "input", "through": ["t", "a"], "to": "output"}}, "a"),
    "two routes in a row": (
        {"r": {"from": "input", "through": ["t"]}, "s": {"from": "r", "through": ["a"], "to": "output"}},
        "a",
    ),
    "two routes that both say that one leads to the other": (
        {
            "r": {"from": "input", "through": ["t"], "to": "s"},
            "s": {"from": "r", "through": ["a"], "to": "output"},
        },
        "a",
    ),
    "a time limit behind the agent": ({"r": {"from": "input", "through": ["a", {"timeout": 5}], "to": "output"}}, "a"),
    "an expression behind the agent": ({"r": {"from": "input", "through": ["a", {"map": "1"}], "to": "output"}}, None),
    "an agent asked twice": ({"r": {"from": "input", "through": ["a", "t", "a"], "to": "output"}}, None),
    "two ends": (
        {
            "r": {"from": "input", "through": ["a"], "to": "output"},
            "s": {"from": "input", "through": ["t"], "to": "output"},
        },
        None,
    ),
    "a merge": (
        {
            "r": {"from": "input", "through": ["t"]},
            "s": {"from": "input", "through": ["u"]},
            "m": {"from": ["r", "s"], "through": ["a"], "to": "output"},
        },
        None,
    ),
    "a step that may be tried again": (
        {"r": {"from": "input", "through": ["t", "a", {"retry": {"attempts": 2}}], "to": "output"}},
        None,
    ),
    "a step before it that may be tried again": (
        {"r": {"from": "input", "through": ["t", {"retry": {"attempts": 2}}, "a", {"timeout": 1}], "to": "output"}},
        "a",
    ),
    "another agent may have to answer": (
        {"r": {"from": "input", "through": ["a"], "to": "output", "on_error": "t"}},
        None,
    ),
    "it may have to answer before": (
        {
            "r": {"from": "input", "through": ["t"], "on_error": "a"},
            "s": {"from": "r", "through": ["a"], "to": "output"},
        },
        None,
    ),
    "what it fails on is left out": (
        {"r": {"from": "input", "through": ["a"], "to": "output", "on_error": "skip"}},
        "a",
    ),
    "a loop": (
        {"r": {"from": ["input", "s"], "through": ["t"]}, "s": {"from": "r", "through": ["a"], "to": "output"}},
        None,
    ),
}


@pytest.mark.parametrize("name", ROUTES)
def test_which_agents_text_can_be_shown_as_it_arrives(name):
    routes, expected = ROUTES[name]
    tool = {"type": "tool", "code": "result = message"}
    agents = {"a": tool} if not routes else {"a": tool, "t": tool, "u": tool}
    assert CleverAgentsApp(AppConfig.model_validate({"agents": agents, "routes": routes})).answering_agent == expected
