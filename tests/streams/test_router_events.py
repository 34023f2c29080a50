"""What whoever listens is told of a run: who answered what, and where two agents meant different things."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents import Message, Reply, StreamRouter
from cleveragents.agents.events import AgentAnswered, ContextConflict, listening
from cleveragents.values.merge import merged, overwritten, value_at
from support.networks import agents, route, run


def heard(router, content, context=None):
    events: list = []
    with listening(events.append):
        try:
            run(router, content, context)
        except Exception as error:  # noqa: BLE001 - what was told is the point
            events.append(error)
    return events


def conflicts(events):
    return [event for event in events if isinstance(event, ContextConflict)]


def test_every_answer_is_told_with_agent_route_and_time_as_it_happens():
    told_by_then = []

    def second(message):
        told_by_then.extend(events)
        return message.content

    parts = agents(first=lambda message: message.content, second=second)
    routes = [route("one", "input", ["first"]), route("two", "one", ["second"], "output")]
    events: list = []
    with listening(events.append):
        run(StreamRouter(parts, routes), "x")

    assert [(event.agent, event.route, event.error) for event in events] == [
        ("first", "one", ""),
        ("second", "two", ""),
    ]
    assert all(event.seconds >= 0 for event in events)
    assert told_by_then == events[:1]


def test_a_failure_is_told_with_its_reason_in_one_line():
    def fail(_):
        raise ValueError("two\nlines")

    (answered, _) = heard(StreamRouter(agents(a=fail), [route("r", "input", ["a"], "output")]), "x")

    assert isinstance(answered, AgentAnswered)
    assert (answered.agent, answered.error) == ("a", "ValueError: two lines")


def test_who_is_cancelled_because_another_was_first_is_told_as_such():
    async def slow(_):
        await asyncio.Event().wait()

    step = {"parallel": {"agents": ["slow", "quick"], "join": "first"}}
    router = StreamRouter(agents(slow=slow, quick=lambda _: "q"), [route("r", "input", [step], "output")])

    assert {(event.agent, event.error) for event in heard(router, "x")} == {("quick", ""), ("slow", "cancelled")}


def side_by_side(**changes):
    """Agents that all see the context as it is at first, and give back their changes in the order of their names."""

    async def scenario(context):
        began = asyncio.Barrier(len(changes))
        turns = {name: asyncio.Event() for name in changes}
        names = sorted(changes)
        turns[names[0]].set()

        def changing(name):
            async def change(_):
                await began.wait()
                await turns[name].wait()
                following = names[names.index(name) + 1 :]
                if following:
                    # It goes on when this agent has given its reply, which it does without waiting.
                    turns[following[0]].set()
                return changes[name]

            return change

        parts = agents(**{name: changing(name) for name in names})
        router = StreamRouter(parts, [route(name, "input", [name], "output") for name in names])
        events: list = []
        with listening(events.append):
            result = await router.run(Message("go", context))
        return result.context, conflicts(events)

    return lambda context: asyncio.run(scenario(context))


def test_two_agents_that_set_one_key_to_different_values_are_a_conflict_and_the_later_wins():
    context, found = side_by_side(a=Reply("a", {"score": 7}), b=Reply("b", {"score": 5}))({"score": 1})

    assert context == {"score": 5}
    assert found == [ContextConflict("b", "b", ("score",), 7, 5)]


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (Reply("a", {"x": 1}), Reply("b", {"y": 1}), []),
        (Reply("a", {"x": 1}), Reply("b", {"x": 1}), []),
        (Reply("a", {"x": 1}), Reply("b", {"x": True}), [("x",)]),
        (Reply("a", {"deep": {"x": 1}}), Reply("b", {"deep": {"y": 1}}), []),
        (Reply("a", {"deep": {"x": 1}}), Reply("b", {"deep": {"x": 2, "y": 1}}), [("deep", "x")]),
        (Reply("a", removed=["deep"]), Reply("b", {"deep": {"old": 2}}), [("deep",)]),
        (Reply("a", {"deep": {"old": 3}}), Reply("b", removed=["deep"]), [("deep",)]),
        (Reply("a", {"deep": {"old": 3}}), Reply("b", removed=[("deep", "old")]), [("deep", "old")]),
        (Reply("a", removed=["deep"]), Reply("b", removed=["deep"]), []),
        (Reply("a", {"deep": None}), Reply("b", {"deep": [1]}), [("deep",)]),
    ],
)
def test_what_is_a_conflict_and_what_is_not(first, second, found):
    _, told = side_by_side(a=first, b=second)({"deep": {"old": 1}})

    assert [event.path for event in told] == found


def test_one_agent_after_the_other_is_no_conflict():
    parts = agents(a=lambda m: Reply(m.content, {"k": 1}), b=lambda m: Reply(m.content, {"k": 2}))

    assert not conflicts(heard(StreamRouter(parts, [route("r", "input", ["a", "b"], "output")]), "x"))


keys = st.sampled_from("abc")
values = st.recursive(
    st.none() | st.integers(0, 2), lambda inner: st.dictionaries(keys, inner, max_size=2), max_leaves=5
)
states = st.dictionaries(keys, values, max_size=3)


@given(states, states)
def test_nothing_is_overwritten_where_nothing_has_changed_meanwhile(before, changes):
    assert not list(overwritten(before, before, changes, list(changes)))


@given(states, states, states)
def test_what_is_told_as_overwritten_is_no_longer_what_it_was(before, theirs, ours):
    now = merged(before, theirs)
    after = merged(now, ours)

    for path in overwritten(before, now, ours):
        one, other = value_at(now, path), value_at(after, path)
        assert one != other or type(one) is not type(other)
