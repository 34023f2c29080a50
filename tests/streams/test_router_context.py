"""The global context of a run: what agents see of it, and what becomes of their changes."""

import asyncio
import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleveragents import Message, Reply, StreamRouter
from cleveragents.errors import AgentError
from cleveragents.values.merge import difference, merged
from support.networks import agents, route, run


def side_by_side(functions):
    return StreamRouter(agents(**functions), [route(name, "input", [name], "output") for name in functions])


async def completed_in_order(functions, context, order):
    """The context after agents that all began with ``context`` have ended in ``order``."""
    working = set()
    all_work = asyncio.Event()
    may_end = {name: asyncio.Event() for name in functions}

    def holding(name, function):
        async def hold(message):
            reply = function(message)
            working.add(name)
            if len(working) == len(functions):
                all_work.set()
            await may_end[name].wait()
            return reply

        return hold

    router = side_by_side({name: holding(name, function) for name, function in functions.items()})
    running = asyncio.ensure_future(router.run(Message("go", context)))
    await all_work.wait()
    for name in order:
        may_end[name].set()
    return (await running).context


def test_the_next_agent_sees_what_the_one_before_changed():
    seen = []

    def plan(message):
        return Reply(message.content, {"plan": {"points": 3}}, removed=["draft"])

    def write(message):
        seen.append(message.context)
        return message.content

    router = StreamRouter(agents(plan=plan, write=write), [route("r", "input", ["plan", "write"], "output")])

    result = run(router, "x", {"draft": 1, "plan": {"title": "T"}})

    assert seen == [{"plan": {"title": "T", "points": 3}}]
    assert result.context == {"plan": {"title": "T", "points": 3}}


def test_agents_side_by_side_see_the_context_as_it_was_when_they_began():
    seen = {}

    def looking(name):
        def look(message):
            seen[name] = dict(message.context)
            return Reply(name, {name: True})

        return look

    context = asyncio.run(completed_in_order({name: looking(name) for name in "abc"}, {"start": 1}, "bca"))

    assert seen == {name: {"start": 1} for name in "abc"}
    assert context == {"start": 1, "a": True, "b": True, "c": True}


def test_of_two_writes_to_one_key_the_later_completion_wins():
    writing = {name: (lambda message, name=name: Reply(name, {"k": {"who": name, name: 1}})) for name in "ab"}

    assert asyncio.run(completed_in_order(writing, {}, "ba")) == {"k": {"who": "a", "a": 1, "b": 1}}
    assert asyncio.run(completed_in_order(writing, {}, "ab")) == {"k": {"who": "b", "a": 1, "b": 1}}


def test_none_is_a_value_and_a_removal_is_a_removal():
    functions = {
        "a": lambda _: Reply("a", {"x": None}),
        "b": lambda _: Reply("b", removed=["y", ("deep", "z")]),
    }

    context = asyncio.run(completed_in_order(functions, {"x": 1, "y": 2, "deep": {"z": 1, "kept": 2}}, "ab"))

    assert context == {"x": None, "deep": {"kept": 2}}


def test_an_agent_that_edits_what_it_is_given_changes_neither_its_neighbour_nor_the_run_nor_the_caller():
    seen = []

    def vandal(message):
        message.context["items"].append("vandal")
        message.context["more"] = True
        message.content.append("vandal")
        message.metadata["vandal"] = True
        return message.content

    def look(message):
        seen.append(copy.deepcopy((message.content, message.context, dict(message.metadata))))
        return "seen"

    router = side_by_side({"vandal": vandal, "look": look})
    content, context, metadata = ["x"], {"items": [1]}, {"m": 1}

    result = asyncio.run(router.run(Message(content, context, metadata)))

    assert seen == [(["x"], {"items": [1]}, {"m": 1})]
    assert result.context == {"items": [1]}
    assert (content, context, metadata) == (["x"], {"items": [1]}, {"m": 1})


def test_an_agent_that_keeps_what_it_gave_cannot_change_it_afterwards():
    kept = {"list": [1]}

    def give(_):
        return Reply(kept["list"], {"list": kept["list"]})

    def change(message):
        kept["list"].append(2)
        return message.content

    router = StreamRouter(agents(give=give, change=change), [route("r", "input", ["give", "change"], "output")])
    result = run(router, "x")

    assert result.output == [1]
    assert result.context == {"list": [1]}


@pytest.mark.parametrize(
    ("reply", "place"),
    [
        (Reply("x", {"a": {"client": object()}}), "a.client: a value of type object"),
        (Reply("x", {"items": [1, print]}), r"items\[1\]: a value of type builtin_function_or_method"),
        (Reply({"n": {1, 2}}), "result.n: a value of type set"),
        (Reply("x", {"n": float("nan")}), "n: nan"),
    ],
)
def test_c38_what_cannot_be_kept_is_refused_with_its_place_and_nothing_of_the_reply_is_kept(reply, place):
    router = StreamRouter(agents(a=lambda _: reply), [route("r", "input", ["a"], "output")])

    with pytest.raises(AgentError, match=f"^agent a: {place}") as caught:
        run(router, "x")

    assert caught.value.route == "r"


def test_c94_a_failed_agent_changes_nothing():
    def fail(message):
        message.context["a"] = 1
        message.context["items"].append("x")
        del message.context["b"]
        raise ValueError("no")

    router = side_by_side({"fail": fail, "good": lambda _: Reply("good", {"c": 3})})

    result = run(router, "x", {"b": 1, "items": []})

    assert result.context == {"b": 1, "items": [], "c": 3}
    assert [error.agent for error in result.errors] == ["fail"]


# --- whatever the agents do, and in whichever order they end --------------------------------------------

keys = st.sampled_from(["a", "b", "c"])
values = st.recursive(
    st.none() | st.integers(0, 3) | st.lists(st.integers(0, 1), max_size=2),
    lambda inner: st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
states = st.dictionaries(keys, values, max_size=3)


def turning_into(after):
    def turn(message):
        changes = difference(message.context, after)
        return Reply("done", changes.set, changes.removed)

    return turn


@settings(deadline=None)
@given(st.data())
def test_the_context_is_what_all_changes_make_of_it_in_order_of_completion(data):
    before = data.draw(states)
    wanted = data.draw(st.lists(states, min_size=1, max_size=4))
    order = data.draw(st.permutations([f"agent{number}" for number in range(len(wanted))]))
    functions = {f"agent{number}": turning_into(after) for number, after in enumerate(wanted)}

    context = asyncio.run(completed_in_order(functions, before, order))

    expected = before
    for name in order:
        changes = difference(before, wanted[int(name.removeprefix("agent"))])
        expected = merged(expected, changes.set, changes.removed)
    assert context == expected


@settings(deadline=None)
@given(st.data())
def test_no_change_of_any_agent_is_lost_whatever_the_order_of_completion(data):
    """Each agent changes, adds and removes things of its own, some beside each other in one nested mapping."""
    count = data.draw(st.integers(2, 5))
    names = [f"agent{number}" for number in range(count)]
    order = data.draw(st.permutations(names))
    before = {"shared": {name: {"old": 1, "gone": 2} for name in names}} | {f"{name}_gone": 1 for name in names}

    def changing(name):
        def change(message):
            after = copy.deepcopy(dict(message.context))
            after["shared"][name]["old"] = [name]
            after["shared"][name]["new"] = None
            del after["shared"][name]["gone"], after[f"{name}_gone"]
            after[name] = {"top": name}
            changes = difference(message.context, after)
            return Reply(name, changes.set, changes.removed)

        return change

    context = asyncio.run(completed_in_order({name: changing(name) for name in names}, before, order))

    assert context == {"shared": {name: {"old": [name], "new": None} for name in names}} | {
        name: {"top": name} for name in names
    }
