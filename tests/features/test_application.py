import pytest
from pytest_bdd import given, parsers, scenarios, then, when

from cleveragents import AppConfig, CleverAgentsApp, ContextManager
from support.scripted_llm import says

scenarios("application.feature")

PROMPT = "And  what now?\n"


def echo(code="result = message"):
    return AppConfig.model_validate({"agents": {"echo": {"type": "tool", "code": code}}})


@pytest.fixture
def context(tmp_path):
    return ContextManager("talk", root=tmp_path)


def repeats(exchange):
    says(exchange.request["messages"][-1]["content"])(exchange)


@pytest.fixture
def llm(scripted_llm):
    scripted_llm.always(repeats)
    return scripted_llm


@given("an application whose only agent repeats what reaches it", target_fixture="app")
def app(llm):
    agent = {"type": "llm", "llm": "openai:gpt-5-mini", "base_url": llm.url}
    return CleverAgentsApp(AppConfig.model_validate({"agents": {"planner": agent}}))


@given(parsers.parse("a context that holds {count:d} messages"))
def context_with_messages(context, count):
    for number in range(1, count + 1):
        context.add_message("user" if number % 2 else "assistant", f"message number {number}.")


@given(parsers.parse("a context that holds an answer of {length:d} characters"))
def context_with_long_answer(context, length):
    context.add_message("user", "Tell me everything.")
    context.add_message("assistant", "x" * length)


@when("a new prompt is run on the context", target_fixture="seen")
def run_prompt(app, context, llm):
    app.run_sync(PROMPT, context=context)
    return llm.requests[-1]["messages"][-1]["content"]


def test_history_goes_in_roles_of_its_own_where_the_file_says_so(context, llm):
    agent = {"type": "llm", "llm": "openai:gpt-5-mini", "base_url": llm.url}
    first = {"type": "tool", "code": "result = message.upper()"}
    routes = {"r": {"from": "input", "through": ["first", "planner"], "to": "output"}}
    config = {"agents": {"planner": agent, "first": first}, "routes": routes, "history": {"as": "messages"}}
    app = CleverAgentsApp(AppConfig.model_validate(config))

    app.run_sync("one", context=context)
    app.run_sync("two", context=context)

    sent = [(message["role"], message["content"]) for message in llm.requests[-1]["messages"]]
    assert sent == [("user", "one"), ("assistant", "ONE"), ("user", "TWO")]


@then("the agents see messages 6 to 15 with their roles, oldest first, and none before")
def last_ten(seen):
    places = [
        seen.index(f"{'user' if number % 2 else 'assistant'}: message number {number}.") for number in range(6, 16)
    ]
    assert places == sorted(places)
    assert not any(f"message number {number}." in seen for number in range(1, 6))


@then("the new prompt stands after them")
def prompt_is_last(seen):
    assert seen.endswith(PROMPT)


@then("the agents see its first 500 characters and a mark that it goes on")
def shortened(seen):
    assert "x" * 500 + "…" in seen
    assert "x" * 501 not in seen


@then("the context still holds all 600")
def kept_whole(context):
    assert context.messages[1].content == "x" * 600


@then("the agents see exactly the prompt")
def unchanged(seen):
    assert seen == PROMPT


@when("the application is made again with temperature 0.8", target_fixture="app")
def with_temperature():
    return CleverAgentsApp(echo("result = context.get('temperature')"), temperature=0.8)


@then("its global context has temperature 0.8")
def in_global_context(app):
    assert app.global_context["temperature"] == 0.8


@then("an agent that looks sees temperature 0.8")
def seen_by_agents(app):
    assert app.run_sync("look").output == 0.8
