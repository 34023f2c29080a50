from pytest_bdd import given, scenarios, then, when

from cleveragents import StreamRouter, ToolAgent
from support.networks import route, run

scenarios("streams.feature")

AGENTS = {
    "opening": """
context["stage"] = "opened"
context["notes"] = {}
context.pop("draft")
result = message + " opened"
""",
    "left": """
context["notes"]["left"] = len(message)
result = "left"
""",
    "right": """
context["notes"]["right"] = [message.upper()]
result = "right"
""",
    "closing": """
context["stage"] = "closed"
context["closing_saw"] = sorted(context["notes"])
result = message + " closed"
""",
}


@given("a network where two agents work side by side between a first and a last one", target_fixture="router")
def router():
    agents = {name: ToolAgent(name, code) for name, code in AGENTS.items()}
    routes = [
        route("opening", "input", ["opening"]),
        route("left", "opening", ["left"]),
        route("right", "opening", ["right"]),
        route("closing", ["left", "right"], ["closing"], "output"),
    ]
    return StreamRouter(agents, routes)


@given("a global context with a value that none of them touches", target_fixture="context")
def context():
    return {"kept": {"as": ["it", "is"]}, "draft": "old", "stage": "new"}


@when("a message flows through the network", target_fixture="result")
def flow(router, context):
    return run(router, "text", context)


@then("the message has passed all of them")
def passed(result):
    assert sorted(result.outputs) == ["left closed", "right closed"]


@then("the last agent has seen what the three before it did")
def seen(result):
    assert result.context["closing_saw"] == ["left", "right"]


@then("the context at the end holds every change, the removal too, and the untouched value")
def complete(result):
    assert result.context == {
        "kept": {"as": ["it", "is"]},
        "stage": "closed",
        "notes": {"left": len("text opened"), "right": ["TEXT OPENED"]},
        "closing_saw": ["left", "right"],
    }
