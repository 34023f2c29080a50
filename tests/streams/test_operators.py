"""Operators whose conditions and expressions run in the real sandbox."""

import asyncio
import contextlib
import itertools

import pytest
from pydantic import ValidationError

from cleveragents import Message, Reply, StreamRouter, Usage
from cleveragents.config import OPERATORS as CONFIGURABLE
from cleveragents.errors import AgentError, ConfigError, LLMError, NoOutputError, StreamError, ToolError
from cleveragents.streams.operators import OPERATORS
from support.networks import agents, pass_through, route, run


def through(*steps, **functions):
    return StreamRouter(agents(**functions), [route("r", "input", steps, "output")])


def test_every_operator_that_can_be_written_can_be_run():
    assert set(OPERATORS) == set(CONFIGURABLE.values())


def test_an_operator_that_is_none_is_refused_when_the_router_is_made():
    class Unknown:
        pass

    unknown = route("r", "input").model_copy(update={"through": (Unknown(),)})

    with pytest.raises(ConfigError, match=r"^route r: Unknown is not an operator$"):
        StreamRouter({}, [unknown])


# --- filter ---------------------------------------------------------------------------------------------


def test_filter_passes_the_messages_of_which_its_condition_is_true_in_order():
    results = asyncio.run(pass_through(through({"filter": "message % 3 == 0"}), range(10)))

    assert results == [0, 3, 6, 9]


def test_filter_sees_context_and_metadata():
    router = through(
        "a",
        {"filter": "context['wanted'] == message and metadata['agent'] == 'a'"},
        a=lambda m: Reply(m.content, {"wanted": "x"}),
    )

    assert run(router, "x").outputs == ["x"]


@pytest.mark.parametrize(("condition", "kept"), [("[]", False), ("'no'", True), ("None", False), ("0.0", False)])
def test_what_counts_as_true_is_what_python_takes_for_it(condition, kept):
    assert asyncio.run(pass_through(through({"filter": condition}), ["x"])) == (["x"] if kept else [])


def test_c101_a_run_whose_only_route_filters_everything_out_ends():
    with pytest.raises(NoOutputError, match=r"^no output: filter in route r passed nothing on$"):
        run(through({"filter": "False"}), "x")


def test_a_condition_that_fails_costs_only_its_message():
    results = asyncio.run(pass_through(through({"filter": "10 // message > 1"}), [1, 0, 2]))

    assert [result for result in results if isinstance(result, int)] == [1, 2]
    (error,) = [result for result in results if not isinstance(result, int)]
    assert isinstance(error, StreamError)
    assert str(error).startswith("route r: filter '10 // message > 1': ZeroDivisionError")
    assert (error.route, error.agent, error.message.content) == ("r", "", 0)
    assert "\n" not in str(error)


def count(message):
    return Reply(message.content, {"n": message.context["n"] + 1})


def test_an_expression_sees_the_context_as_it_was_when_its_message_was_handed_on():
    # The agent is done with all messages long before the first expression is evaluated.
    router = through("count", {"map": "[message, context['n']]"}, {"map": "[*message, context['n']]"}, count=count)

    assert asyncio.run(pass_through(router, range(10), {"n": 0})) == [[n, n + 1, n + 1] for n in range(10)]


def test_at_the_input_an_expression_sees_the_context_of_the_run():
    assert asyncio.run(pass_through(through({"map": "context['n']"}), ["x"], {"n": 5})) == [5]


def test_filters_that_exclude_each_other_let_each_message_through_once():
    routes = [
        route("draft", ["input", "again"], ["count"]),
        # It comes to a message after the loop has gone on with it.
        route("done", "draft", [{"map": "message"}, {"map": "message"}, {"filter": "context['n'] >= 3"}], "output"),
        route("again", "draft", [{"filter": "context['n'] < 3"}]),
    ]

    assert run(StreamRouter(agents(count=count), routes), "x", {"n": 0}).outputs == ["x"]


def test_an_expression_cannot_change_the_context():
    router = through({"map": "context['list'].append(1) or context['list']"})

    result = run(router, "x", {"list": []})

    assert result.output == [1]
    assert result.context == {"list": []}


# --- map ------------------------------------------------------------------------------------------------


def test_map_puts_the_value_of_its_expression_in_the_place_of_the_content():
    assert run(through({"map": "{'words': message.split(), 'who': context['who']}"}), "a b", {"who": "me"}).outputs == [
        {"words": ["a", "b"], "who": "me"}
    ]


def test_map_keeps_metadata():
    seen = []

    def look(message):
        seen.append(dict(message.metadata))
        return message.content

    run(through({"map": "message + '!'"}, "look", look=look), "x", metadata={"line": 3})

    assert seen == [{"line": 3}]


def test_where_map_gives_none_nothing_goes_on():
    results = asyncio.run(pass_through(through({"map": "message if message > 1 else None"}), [1, 2, 3]))

    assert results == [2, 3]


def test_operators_and_agents_stand_in_one_chain():
    router = through({"filter": "message"}, "up", {"map": "message[::-1]"}, "up", up=lambda m: m.content.upper() + "x")

    assert run(router, "ab").outputs == ["XBAx"]


def test_a_value_that_is_not_json_is_refused_with_route_and_operator():
    with pytest.raises(StreamError, match=r"^route r: map '\{1, 2\}': value: a value of type set cannot be stored"):
        run(through({"map": "{1, 2}"}), "x")


# --- scan, distinct, buffer -----------------------------------------------------------------------------


def test_scan_begins_with_the_first_message_or_with_its_seed():
    assert asyncio.run(pass_through(through({"scan": {"value": "accumulated + message"}}), [1, 2, 3])) == [1, 3, 6]
    seeded = {"scan": {"value": "accumulated + [message]", "seed": []}}
    assert asyncio.run(pass_through(through(seeded), [1, 2])) == [[1], [1, 2]]


def test_a_message_that_scan_fails_on_leaves_what_was_accumulated():
    results = asyncio.run(pass_through(through({"scan": {"value": "accumulated + message"}}), [1, "x", 2]))

    assert [result for result in results if isinstance(result, int)] == [1, 3]
    assert len(results) == 3


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1, True, 1.0, "1", 1, "1"], [1, True, 1.0, "1"]),
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1}], [{"a": 1, "b": 2}, {"a": 1}]),
        (["x" * 1000, "x" * 999 + "y", "x" * 1000], ["x" * 1000, "x" * 999 + "y"]),
        ([[1], [1], [[1]], [], None, ""], [[1], [[1]], [], None, ""]),
    ],
)
def test_distinct_compares_as_json(given, expected):
    results = asyncio.run(pass_through(through({"distinct": "message"}), given))

    assert [(type(result), result) for result in results] == [(type(value), value) for value in expected]


def test_distinct_by_an_expression_keeps_the_first_of_each_value():
    given = [{"id": 1, "n": "a"}, {"id": 2, "n": "b"}, {"id": 1, "n": "c"}]

    assert asyncio.run(pass_through(through({"distinct": "message['id']"}), given)) == given[:2]


def test_buffer_gives_what_is_left_when_nothing_more_comes():
    assert asyncio.run(pass_through(through({"buffer": {"count": 3}}), range(7))) == [[0, 1, 2], [3, 4, 5], [6]]
    assert asyncio.run(pass_through(through({"buffer": {"seconds": 3600}}), range(3))) == [[0, 1, 2]]


def test_a_run_of_one_message_does_not_wait_for_time_to_pass():
    through_time = [{"debounce": 3600}, {"throttle": 3600}, {"buffer": {"seconds": 3600, "count": 9}}]

    assert run(through(*through_time), "x").outputs == [["x"]]


# --- take -----------------------------------------------------------------------------------------------


def test_take_ends_a_run_whose_input_never_does():
    assert asyncio.run(pass_through(through({"take": 3}), itertools.count())) == [0, 1, 2]


def test_an_agent_before_take_is_cancelled_when_take_has_had_enough():
    async def scenario():
        begun: list[int] = []
        ended: list[int] = []
        second_begun = asyncio.Event()

        async def work(message):
            begun.append(message.content)
            if message.content == 2:
                second_begun.set()
            try:
                if message.content == 2:
                    await asyncio.Event().wait()
            finally:
                ended.append(message.content)
            return message.content

        async def hold(message):
            await second_begun.wait()
            return message.content

        router = through("work", "hold", {"take": 1}, work=work, hold=hold)
        results = await asyncio.wait_for(pass_through(router, [1, 2, 3]), 30)
        return results, begun, ended

    assert asyncio.run(scenario()) == ([1], [1, 2], [1, 2])


def test_a_loop_whose_route_has_had_enough_ends():
    routes = [
        route("a", ["input", "b"], ["up", {"take": 3}]),
        route("b", "a", ["up"]),
        route("c", "a", [], "output"),
    ]

    assert run(StreamRouter(agents(up=lambda m: m.content + 1), routes), 0).outputs == [1, 3, 5]


def test_messages_that_still_wait_when_take_has_had_enough_do_not_keep_their_loop_alive():
    sources = [route(name, "input") for name in ("one", "two", "three")]
    routes = [
        *sources,
        route("a", ["one", "two", "three", "b"], ["up", {"take": 1}]),
        route("b", "a", [{"buffer": {"count": 5}}]),
        route("c", "b", [], "output"),
    ]
    router = StreamRouter(agents(up=lambda m: m.content + 1), routes)

    result = asyncio.run(asyncio.wait_for(router.run(Message(0)), 30))

    assert result.outputs == [[1]]


# --- operators that keep messages, in a loop ------------------------------------------------------------


@pytest.mark.parametrize(
    "step", [{"delay": 0.001}, {"debounce": 0.001}, {"buffer": {"seconds": 0.001}}, {"buffer": {"count": 1}}], ids=str
)
def test_a_loop_goes_on_while_an_operator_keeps_its_message(step):
    def up(message):
        number = message.content[0] if isinstance(message.content, list) else message.content
        return number + 1

    routes = [
        route("a", ["input", "b"], ["up"]),
        route("b", "a", ["low", step]),
        route("c", "a", ["high"], "output"),
    ]
    parts = agents(
        up=up, low=lambda m: m.content if m.content < 4 else None, high=lambda m: m.content if m.content == 4 else None
    )

    assert run(StreamRouter(parts, routes), 0).outputs == [4]


def test_what_comes_back_after_a_loop_has_ended_is_reported():
    routes = [
        route("a", ["input", "b"], ["same"]),
        route("b", "a", [{"buffer": {"count": 2}}]),
        route("c", "b", [], "output"),
    ]

    result = run(StreamRouter(agents(same=lambda m: m.content), routes), "x")

    assert result.outputs == [["x"]]
    assert [str(error) for error in result.errors] == [
        "route a: a message came back after the loop had ended: a -> b -> a"
    ]


# --- retry and timeout ----------------------------------------------------------------------------------


class Flaky:
    """Fails until it has been asked ``failures`` times."""

    name = "flaky"

    def __init__(self, failures, error):
        self.failures = failures
        self.error = error
        self.asked = 0

    async def process(self, message):
        self.asked += 1
        if self.asked <= self.failures:
            raise self.error
        return Reply(message.content, {"asked": self.asked})


def busy():
    return LLMError("flaky", "429: too busy", temporary=True)


@pytest.mark.parametrize("error", [busy(), ConnectionRefusedError("no"), TimeoutError("late")], ids=repr)
def test_retry_asks_again_when_that_may_help(error):
    flaky = Flaky(2, error)
    router = StreamRouter(
        {"flaky": flaky}, [route("r", "input", ["flaky", {"retry": {"attempts": 3, "backoff": 0.001}}], "output")]
    )

    result = run(router, "x")

    assert (result.outputs, result.errors, result.context) == (["x"], [], {"asked": 3})


@pytest.mark.parametrize(
    "error", [LLMError("flaky", "401: wrong key"), ToolError("flaky", "1/0"), KeyError("x")], ids=repr
)
def test_retry_does_not_ask_again_when_that_cannot_help(error):
    flaky = Flaky(1, error)
    router = StreamRouter({"flaky": flaky}, [route("r", "input", ["flaky", {"retry": {"attempts": 3}}], "output")])

    with pytest.raises(AgentError):
        run(router, "x")

    assert flaky.asked == 1


def test_when_all_attempts_have_failed_the_last_error_is_reported_once():
    flaky = Flaky(9, busy())
    steps = ["flaky", {"retry": {"attempts": 3, "backoff": 0.001}}]
    router = StreamRouter({"flaky": flaky}, [route("r", "input", steps, "output")])

    results = asyncio.run(pass_through(router, ["x"]))

    assert [str(error) for error in results] == ["agent flaky: 429: too busy"]
    assert flaky.asked == 3


def test_timeout_cancels_an_agent_that_is_late_and_the_next_message_goes_on():
    async def scenario():
        ended = []

        async def slow(message):
            if message.content != "slow":
                return message.content
            try:
                await asyncio.Event().wait()
            finally:
                ended.append(message.content)

        results = await pass_through(through("slow", {"timeout": 0.01}, slow=slow), ["slow", "quick"])
        return [str(result) for result in results], ended

    assert asyncio.run(scenario()) == (["agent slow: gave nothing within 0.01 s", "quick"], ["slow"])


@pytest.mark.parametrize(
    "steps",
    [[{"retry": {"attempts": 2}}], [{"take": 1}, {"timeout": 1}], ["a", {"buffer": {"count": 2}}, {"timeout": 1}]],
)
def test_a_modifier_needs_a_step_that_it_can_modify(steps):
    with pytest.raises(ValidationError, match="must follow the step it is for"):
        route("r", "input", steps, "output")


# --- parallel and switch --------------------------------------------------------------------------------


def test_parallel_asks_ten_agents_at_the_same_time():
    async def scenario():
        together = asyncio.Barrier(10)
        in_flight = most = 0

        async def meet(message):
            nonlocal in_flight, most
            in_flight += 1
            most = max(most, in_flight)
            await together.wait()
            in_flight -= 1
            return Reply(message.content, {"met": {str(together.parties): True}})

        names = [f"critic{number}" for number in range(10)]
        router = through({"parallel": {"agents": names}}, **dict.fromkeys(names, meet))
        return names, await asyncio.wait_for(router.run(Message("draft")), 30), most

    names, result, most = asyncio.run(scenario())
    assert most == 10
    assert result.output == dict.fromkeys(names, "draft")
    assert list(result.output) == names
    assert result.context == {"met": {"10": True}}


def test_no_change_of_an_agent_in_parallel_is_lost():
    parts = {name: (lambda m, name=name: Reply(name, {"by": {name: 1}}, removed=[name])) for name in "abc"}

    result = run(through({"parallel": {"agents": list("abc")}}, **parts), "x", {"a": 1, "b": 2, "c": 3, "kept": 4})

    assert result.context == {"kept": 4, "by": {"a": 1, "b": 1, "c": 1}}


def test_who_is_not_first_is_cancelled_and_changes_nothing():
    async def scenario():
        ended = []

        async def slow(_):
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("slow")
            return Reply("slow", {"slow": True})

        seen = []

        def look(message):
            seen.append(message.metadata["agent"])
            return message.content

        router = through(
            {"parallel": {"agents": ["slow", "quick"], "join": "first"}},
            "look",
            slow=slow,
            quick=lambda _: Reply("quick", {"quick": True}),
            look=look,
        )
        result = await router.run(Message("x"))
        return result.outputs, result.context, ended, seen

    assert asyncio.run(scenario()) == (["quick"], {"quick": True}, ["slow"], ["quick"])


def test_an_agent_that_will_not_be_cancelled_changes_nothing_either():
    async def stubborn(_):
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return Reply("late", {"late": True}, usage=Usage(5, 1, 0, 1, "big"))

    step = {"parallel": {"agents": ["stubborn", "quick"], "join": "first"}}

    result = run(through(step, stubborn=stubborn, quick=lambda _: "quick"), "x")

    assert (result.outputs, result.context) == (["quick"], {})


def test_a_majority_of_agents_decides():
    parts = {"a": lambda _: "yes", "b": lambda _: "no", "c": lambda _: "yes"}

    assert run(through({"parallel": {"agents": list("abc"), "join": "majority"}}, **parts), "?").outputs == ["yes"]


def test_an_agent_in_parallel_that_fails_is_named():
    def fail(_):
        raise ValueError("no")

    with pytest.raises(AgentError, match=r"^agent bad: ValueError: no$") as caught:
        run(through({"parallel": {"agents": ["good", "bad"]}}, good=lambda m: m.content, bad=fail), "x")

    assert caught.value.route == "r"


def test_switch_asks_the_agent_of_the_first_case_that_is_true():
    step = {
        "switch": [
            {"when": "len(message) > 5", "agent": "shorten"},
            {"when": "context['loud']", "agent": "shout"},
            {"agent": "same"},
        ]
    }
    parts = {
        "shorten": lambda m: m.content[:5],
        "shout": lambda m: m.content.upper(),
        "same": lambda m: m.content + ".",
    }

    assert run(through(step, **parts), "long text", {"loud": True}).outputs == ["long "]
    assert run(through(step, **parts), "text", {"loud": True}).outputs == ["TEXT"]
    assert run(through(step, **parts), "text", {"loud": False}).outputs == ["text."]


def test_a_message_for_which_no_case_is_true_goes_on_as_it_is():
    step = {"switch": [{"when": "False", "agent": "shout"}]}

    assert run(through(step, shout=lambda m: m.content.upper()), "text").outputs == ["text"]


@pytest.mark.parametrize(
    "step", [{"parallel": {"agents": ["a", "nobody"]}}, {"switch": [{"agent": "nobody"}]}], ids=str
)
def test_agents_named_inside_an_operator_must_be_there(step):
    with pytest.raises(ConfigError, match=r"^route r: through names nobody, which is not an agent$"):
        through(step, a=lambda m: m.content)
