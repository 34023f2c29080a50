"""Every run ends: loops, runs without output, cancellation, many messages."""

import asyncio
import gc
import tracemalloc

import pytest

from cleveragents import Message, Reply, StreamRouter
from cleveragents.errors import NoOutputError, StreamError
from cleveragents.streams.run import MAX_IN_FLIGHT
from support.campaign import campaign
from support.networks import agents, pass_through, route, run


def same(message):
    return message.content


def rounds(count, *, hop_limit):
    """Two agents that pass a number back and forth until it has gone round ``count`` times."""

    def up(message):
        return message.content + 1

    def until(message):
        return message.content if message.content < count else None

    def done(message):
        return message.content if message.content == count else None

    parts = agents(up=up, again=until, done=done)
    routes = [
        route("ping", ["input", "pong"], ["up"]),
        route("pong", "ping", ["again"]),
        route("end", "ping", ["done"], "output"),
    ]
    return StreamRouter(parts, routes, hop_limit=hop_limit)


# --- loops ----------------------------------------------------------------------------------------------


def test_a_loop_goes_round_until_an_agent_ends_it():
    assert run(rounds(5, hop_limit=25), 0).outputs == [5]


@pytest.mark.campaign
@pytest.mark.parametrize("count", [500, campaign(short=1_000, long=5_000)], ids=["short", "long"])
def test_c100_a_long_loop_completes(count):
    assert run(rounds(count, hop_limit=10_000), 0).outputs == [count]


def test_c100_a_loop_past_the_limit_ends_with_an_error_that_shows_the_way():
    with pytest.raises(StreamError) as caught:
        run(rounds(50, hop_limit=5), 0)

    assert str(caught.value) == (
        "route pong: the limit of 5 hops is reached: ping -> pong -> ping -> pong -> ping -> pong; "
        "end the loop sooner, or raise hop_limit"
    )
    assert caught.value.route == "pong"
    assert caught.value.message.content == 3


def test_exactly_as_many_hops_as_allowed_are_no_error():
    # The input enters ping, then four times pong and ping: nine hops.
    assert run(rounds(5, hop_limit=9), 0).outputs == [5]
    with pytest.raises(StreamError):
        run(rounds(5, hop_limit=8), 0)


def test_the_limit_counts_for_each_message_by_itself():
    router = rounds(5, hop_limit=9)

    assert asyncio.run(pass_through(router, [0, 3, -50, 0]))[-1] == 5


def test_a_long_way_without_a_loop_is_not_limited():
    names = [f"r{number}" for number in range(200)]
    routes = [
        route(name, names[number - 1] if number else "input", ["a"], "output" if name == names[-1] else ())
        for number, name in enumerate(names)
    ]

    assert run(StreamRouter(agents(a=same), routes, hop_limit=1), "far").outputs == ["far"]


def test_a_loop_without_any_agent_ends_at_the_limit_too():
    router = StreamRouter({}, [route("a", ["input", "b"]), route("b", "a", [], "a")], hop_limit=10_000)

    with pytest.raises(StreamError, match="limit of 10000 hops"):
        run(router, "round and round")


def test_a_message_that_splits_in_a_loop_is_limited_on_each_way():
    routes = [route("a", ["input", "a", "b"], ["x"]), route("b", "a", ["x"], "output")]

    result = run(StreamRouter(agents(x=same), routes, hop_limit=6), "x")

    assert {str(error).partition(":")[0] for error in result.errors} == {"route a", "route b"}
    assert len(result.outputs) == 12, "the ways of at most 6 hops that end in b"


def test_a_long_path_is_shown_by_its_end():
    with pytest.raises(StreamError, match=r"reached: \.\.\. -> ping -> pong( -> ping -> pong){5} -> ping; "):
        run(rounds(500, hop_limit=100), 0)


# --- nothing comes out ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("routes", "reason"),
    [
        ([route("r", "input", ["silent", "a"], "output")], "silent in route r passed nothing on"),
        (
            [route("one", "input", ["a"]), route("two", "one", ["silent"], "output")],
            "silent in route two passed nothing on",
        ),
        ([route("r", "input", ["a"])], "route r leads nowhere; give it 'to: output'"),
        ([route("r", "r", ["a"], "output")], "no route leads from input to output"),
        ([route("in", "input", ["a"]), route("out", "other", [], "output"), route("other", "out")], "route in leads"),
        ([], "no route leads from input to output"),
    ],
)
def test_c101_a_run_without_output_ends_and_says_where_the_message_did(routes, reason):
    router = StreamRouter(agents(a=same, silent=lambda _: None), routes)

    with pytest.raises(NoOutputError) as caught:
        run(router, "x")

    assert str(caught.value).startswith(f"no output: {reason}")


def test_c101_a_stream_of_no_messages_ends():
    assert asyncio.run(pass_through(rounds(5, hop_limit=9), [])) == []


# --- cancelling -----------------------------------------------------------------------------------------


def test_c101_cancelling_with_two_busy_agents_ends_both_and_leaves_no_task():
    async def scenario():
        busy = asyncio.Barrier(3)
        ended = []

        async def work(message):
            try:
                await busy.wait()
                await asyncio.Event().wait()
            finally:
                ended.append(message.content)

        routes = [route(name, "input", [name], "output") for name in ("a", "b")]
        running = asyncio.ensure_future(StreamRouter(agents(a=work, b=work), routes).run(Message("x")))
        await busy.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return ended, asyncio.all_tasks() - {asyncio.current_task()}

    ended, left = asyncio.run(scenario())
    assert ended == ["x", "x"]
    assert left == set()


def test_what_agents_had_changed_is_there_after_a_cancelled_run():
    async def scenario():
        second_began = asyncio.Event()

        async def stay(_):
            second_began.set()
            await asyncio.Event().wait()

        parts = agents(first=lambda m: Reply(m.content, {"done": 1}), second=stay)
        router = StreamRouter(parts, [route("r", "input", ["first", "second"], "output")])
        one_run = router.start({})

        async def use():
            async with one_run:
                async for _ in one_run.results([Message("x")]):
                    pass

        running = asyncio.ensure_future(use())
        await second_began.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        return one_run.context

    assert asyncio.run(scenario()) == {"done": 1}


def test_leaving_a_run_early_ends_what_still_works():
    async def scenario():
        ended = []

        async def stay(message):
            if message.content == 1:
                return 1
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(message.content)

        router = StreamRouter(agents(a=stay), [route("r", "input", ["a"], "output")])
        async with router.start() as one_run:
            results = one_run.results(Message(number) for number in range(1, 10))
            first = await anext(results)
            await asyncio.sleep(0)
            await results.aclose()
        assert isinstance(first, Message)
        return first.content, ended, asyncio.all_tasks() - {asyncio.current_task()}

    first, ended, left = asyncio.run(scenario())
    assert (first, left) == (1, set())
    assert ended in ([], [2]), "the second message may not have begun"


def test_no_task_is_left_after_a_run_that_ends_by_itself():
    async def scenario():
        await rounds(50, hop_limit=200).run(Message(0))
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(scenario()) == set()


# --- many messages --------------------------------------------------------------------------------------


def test_messages_are_taken_as_there_is_room_for_them():
    async def scenario():
        taken = 0
        most_waiting = 0
        given = 0

        def source():
            nonlocal taken, most_waiting
            for number in range(500):
                taken += 1
                most_waiting = max(most_waiting, taken - given)
                yield Message(number)

        async def work(message):
            await asyncio.sleep(0)
            return message.content

        router = StreamRouter(agents(a=work), [route("r", "input", ["a"], "output")])
        async with router.start() as one_run:
            async for _ in one_run.results(source()):
                given += 1
        return given, most_waiting

    given, most_waiting = asyncio.run(scenario())
    assert given == 500
    assert most_waiting <= MAX_IN_FLIGHT + 1


def test_other_tasks_get_their_turn_while_messages_pass_that_wait_for_nothing():
    async def scenario():
        turns = 0

        async def other():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.ensure_future(other())
        await pass_through(StreamRouter({}, [route("r", "input", [], "output")]), range(2_000))
        beside.cancel()
        return turns

    assert asyncio.run(scenario()) > 10


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("through", "count"),
    [
        ([{"skip": 1}, {"throttle": 1e-6}, {"take": 10**9}], campaign(short=20_000, long=200_000)),
        (["a"], campaign(short=2_000, long=4_000)),
    ],
    ids=["operators", "agent"],
)
def test_memory_does_not_grow_with_the_messages_that_have_passed(through, count):
    async def scenario():
        router = StreamRouter(agents(a=same), [route("one", "input", through), route("two", "one", [], "output")])
        used = []
        passed = 0
        async with router.start() as one_run:
            async for _ in one_run.results(Message(number) for number in range(count)):
                passed += 1
                if passed in {count // 8, count - 100}:
                    gc.collect()
                    used.append(tracemalloc.get_traced_memory()[0])
        return used

    tracemalloc.start()
    try:
        early, late = asyncio.run(scenario())
    finally:
        tracemalloc.stop()
    assert late - early < 100_000


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rounds_of_a_loop():
    def peak(count):
        tracemalloc.start()
        try:
            run(rounds(count, hop_limit=10_000), 0)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)
    assert peak(1_000) - peak(100) < 50_000
