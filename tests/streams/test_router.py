"""How messages find their way: chains, splits, merges, order."""

import asyncio

import pytest

from cleveragents import Agent, Message, Reply, StreamRouter, Usage
from cleveragents.errors import ConfigError
from support.networks import agents, pass_through, route, run


def adding(letter):
    return lambda message: message.content + letter


def test_a_message_passes_the_agents_of_a_chain_in_order():
    router = StreamRouter(agents(a=adding("a"), b=adding("b")), [route("r", "input", ["a", "b", "a"], "output")])

    result = run(router, ">")

    assert result.outputs == [">aba"]
    assert result.output == ">aba"
    assert result.errors == []


def test_routes_follow_each_other_whichever_end_names_the_other():
    parts = agents(a=adding("a"), b=adding("b"), c=adding("c"))
    by_from = [route("x", "input", ["a"]), route("y", "x", ["b"]), route("z", "y", ["c"], "output")]
    by_to = [route("x", "input", ["a"], "y"), route("y", "x", ["b"], "z"), route("z", "y", ["c"], "output")]

    assert run(StreamRouter(parts, by_from), ">").outputs == [">abc"]
    assert run(StreamRouter(parts, by_to), ">").outputs == [">abc"], "named at both ends, a message goes over once"


def test_routes_may_be_declared_in_any_order():
    routes = [route("z", "y", ["b"], "output"), route("y", "input", ["a"])]

    assert run(StreamRouter(agents(a=adding("a"), b=adding("b")), routes), ">").outputs == [">ab"]


def test_a_route_without_stages_passes_messages_on():
    assert run(StreamRouter({}, [route("r", "input", [], "output")]), "as it is").outputs == ["as it is"]


def test_every_branch_of_a_split_gets_the_message():
    routes = [
        route("start", "input", ["a"]),
        route("left", "start", ["b"], "output"),
        route("right", "start", ["c"], "output"),
    ]

    result = run(StreamRouter(agents(a=adding("a"), b=adding("b"), c=adding("c")), routes), ">")

    assert sorted(result.outputs) == [">ab", ">ac"]


def test_one_route_may_lead_to_several_targets():
    routes = [route("start", "input", ["a"], ["output", "more"]), route("more", "start", ["b"], "output")]

    assert run(StreamRouter(agents(a=adding("a"), b=adding("b")), routes), ">").outputs == [">a", ">ab"]


def test_a_merge_gets_the_messages_of_all_its_sources():
    routes = [
        route("left", "input", ["b"]),
        route("right", "input", ["c"]),
        route("end", ["left", "right", "input"], ["a"], "output"),
    ]

    result = run(StreamRouter(agents(a=adding("a"), b=adding("b"), c=adding("c")), routes), ">")

    assert sorted(result.outputs) == [">a", ">ba", ">ca"]


def test_outputs_of_branches_come_in_order_of_completion():
    async def scenario():
        first_may_go = asyncio.Event()

        async def slow(_):
            await first_may_go.wait()
            return "slow"

        def quick(_):
            first_may_go.set()
            return "quick"

        routes = [route("left", "input", ["slow"], "output"), route("right", "input", ["quick"], "output")]
        return await StreamRouter(agents(slow=slow, quick=quick), routes).run(Message("go"))

    assert asyncio.run(scenario()).outputs == ["quick", "slow"]


def test_agents_of_different_branches_work_at_the_same_time():
    async def scenario():
        together = asyncio.Barrier(3)

        async def meeting(message):
            await together.wait()
            return message.content

        routes = [route(name, "input", [name], "output") for name in ("a", "b", "c")]
        router = StreamRouter(agents(a=meeting, b=meeting, c=meeting), routes)
        return await asyncio.wait_for(router.run(Message("met")), 30)

    assert asyncio.run(scenario()).outputs == ["met"] * 3


def test_a_stage_takes_one_message_after_the_other_while_the_next_stage_works_on_the_one_before():
    async def scenario():
        inside = {"first": 0, "second": 0}
        most = dict(inside)
        both = asyncio.Event()

        def working(name, other):
            async def work(message):
                inside[name] += 1
                most[name] = max(most[name], inside[name])
                if inside[other]:
                    both.set()
                if message.content in (0, 1):
                    # The first message in the second stage waits for the second one in the first.
                    await (both.wait() if name == "second" or message.content else asyncio.sleep(0))
                inside[name] -= 1
                return message.content

            return work

        parts = agents(first=working("first", "second"), second=working("second", "first"))
        router = StreamRouter(parts, [route("r", "input", ["first", "second"], "output")])
        results = await asyncio.wait_for(pass_through(router, range(20)), 30)
        return results, most, both.is_set()

    results, most, overlapped = asyncio.run(scenario())
    assert results == list(range(20)), "order is kept"
    assert most == {"first": 1, "second": 1}
    assert overlapped


def test_counting_in_the_context_counts_every_message():
    def count(message):
        return Reply(message.content, {"seen": message.context.get("seen", 0) + 1})

    routes = [*(route(name, "input") for name in "abcde"), route("end", list("abcde"), ["count"], "output")]

    assert run(StreamRouter(agents(count=count), routes), "x").context == {"seen": 5}


def test_nothing_flows_on_from_a_reply_without_content_but_its_changes_stay():
    routes = [route("quiet", "input", ["silent", "a"], "output"), route("loud", "input", ["a"], "output")]
    router = StreamRouter(agents(silent=lambda _: Reply(None, {"heard": True}), a=adding("a")), routes)

    result = run(router, ">")

    assert result.outputs == [">a"]
    assert result.context == {"heard": True}


def test_metadata_travel_on_with_the_name_of_the_agent_that_spoke_last():
    seen = []

    def look(message):
        seen.append(dict(message.metadata))
        return message.content

    router = StreamRouter(agents(one=look, two=look), [route("r", "input", ["one", "two"], "output")])

    run(router, "x", metadata={"line": 7})

    assert seen == [{"line": 7}, {"line": 7, "agent": "one"}]


def test_what_every_llm_used_is_added_up():
    def asking(llm, tokens):
        return lambda message: Reply(message.content, usage=Usage(tokens, 1, 0, 1, llm))

    parts = agents(a=asking("big", 10), b=asking("small", 5), c=asking("big", 20))

    result = run(StreamRouter(parts, [route("r", "input", ["a", "b", "c"], "output")]), "x")

    assert result.usage == Usage(35, 3, 0, 3)
    assert result.usages == [Usage(30, 2, 0, 2, "big"), Usage(5, 1, 0, 1, "small")]


def test_a_run_leaves_nothing_behind_for_the_next_one():
    def count(message):
        return Reply(message.content, {"seen": message.context.get("seen", 0) + 1})

    router = StreamRouter(agents(count=count), [route("r", "input", ["count"], "output")])

    assert run(router, "x").context == {"seen": 1}
    assert run(router, "x").context == {"seen": 1}


def test_several_runs_of_one_router_may_go_on_at_the_same_time():
    async def scenario():
        together = asyncio.Barrier(2)

        async def meeting(message):
            await together.wait()
            return Reply(message.content, {"own": message.content})

        router = StreamRouter(agents(a=meeting), [route("r", "input", ["a"], "output")])
        return await asyncio.wait_for(asyncio.gather(router.run(Message("one")), router.run(Message("two"))), 30)

    one, two = asyncio.run(scenario())
    assert (one.output, one.context) == ("one", {"own": "one"})
    assert (two.output, two.context) == ("two", {"own": "two"})


def test_the_test_agents_are_agents():
    assert isinstance(agents(a=adding("a"))["a"], Agent)


@pytest.mark.parametrize(
    ("routes", "faults"),
    [
        ([route("r", "nowhere", [], "output")], ["route r: from names nowhere"]),
        ([route("r", "input", [], "nowhere")], ["route r: to names nowhere"]),
        ([route("r", "input", ["nobody"], "output")], ["route r: through names nobody"]),
        ([route("r", "input", [], "output"), route("r", "input")], ["route r: two routes have this name"]),
        ([route("input", "input", [], "output")], ["route input: the name is reserved"]),
        ([route("r", "output", [], "input")], ["route r: from names output", "route r: to names input"]),
    ],
)
def test_a_router_whose_routes_name_what_is_not_there_is_not_made(routes, faults):
    with pytest.raises(ConfigError) as caught:
        StreamRouter({}, routes)

    assert [fault.split(",")[0] for fault in caught.value.faults] == faults
