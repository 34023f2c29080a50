"""Operators over time, as marble diagrams: a character is a second of virtual time."""

import pytest
import reactivex as rx
from reactivex import operators as ops

from cleveragents.errors import AgentError, LLMError, StreamError
from cleveragents.streams.joins import join_all, join_first, join_majority
from support.networks import agents
from support.virtual import Timeline, content, diagram, parcel

LISTS = {"u": ["a"], "v": ["a", "b"], "w": ["c", "d"], "x": ["c"], "y": ["e"], "z": ["a", "b", "c"]}


@pytest.mark.parametrize(
    ("step", "given", "expected"),
    [
        ({"take": 2}, "-a-b-c-d-|", "-a-(b|)"),
        ({"take": 5}, "-a-b-|", "-a-b-|"),
        ({"skip": 2}, "-a-b-c-d-|", "-----c-d-|"),
        ({"skip": 5}, "-a-b-|", "-----|"),
        ({"distinct": "message"}, "-a-b-a-b-c-|", "-a-b-----c-|"),
        ({"delay": 3}, "-a-b-|", "----a-b-|"),
        ({"debounce": 2}, "-a-b--c----d|", "-----b--c---(d|)"),
        ({"debounce": 3}, "-a-b-c-d-|", "---------(d|)"),
        ({"throttle": 3}, "-a-b-cd-e-|", "-a---c--e-|"),
        ({"buffer": {"count": 2}}, "-a-b-c-d-|", "---v---w-|"),
        ({"buffer": {"count": 2}}, "-a-b-c-|", "---v---(x|)"),
        ({"buffer": {"seconds": 4}}, "-a-b--c-d--e|", "----v---w---(y|)"),
        ({"buffer": {"seconds": 4}}, "-a---------|", "----u------|"),
        ({"buffer": {"count": 2, "seconds": 4}}, "-ab-----c-----|", "--v-------x---|"),
        ({"buffer": {"count": 3, "seconds": 9}}, "-a-b-c-|", "-----z-|"),
    ],
    ids=str,
)
def test_an_operator_behaves_as_its_diagram(step, given, expected):
    time = Timeline()

    assert time.run(time.hot(given).pipe(time.operator(step))) == diagram(expected, LISTS)


@pytest.mark.parametrize(
    "step", [{"debounce": 3}, {"delay": 3}, {"buffer": {"seconds": 3}}, {"buffer": {"seconds": 3, "count": 9}}], ids=str
)
def test_while_an_operator_keeps_messages_its_loop_is_not_over(step):
    time = Timeline()
    stage = time.stage()
    held = []
    looking = time.hot("--l------l|").pipe(ops.do_action(lambda _: held.append(stage._route.part.held)))

    time.run(rx.merge(time.hot("-(ab)----|").pipe(time.operator(step, stage)), looking))

    assert held == [2 if "delay" in step else 1, 0]


def test_what_an_operator_keeps_is_forgotten_when_a_later_one_has_had_enough():
    time = Timeline()
    stage = time.stage()

    results = time.run(time.hot("-abcd-|").pipe(time.operator({"delay": 3}, stage), ops.take(1)))

    assert results == diagram("----(a|)")
    assert stage._route.part.held == 0


# --- operators whose expressions and agents take time ----------------------------------------------------

REPLIES = {"x": {"up": "A", "same": "a"}, "y": {"up": "B", "same": "b"}, "z": {"up": "C", "same": "c"}}
TALKERS = agents(
    up=lambda message: message.content.upper(),
    loud=lambda message: message.content.upper(),
    same=lambda message: message.content,
)
TO_UP = [{"when": "message in 'bd'", "agent": "up"}]


@pytest.mark.parametrize(
    ("step", "given", "expected"),
    [
        ({"filter": "message != 'b'"}, "-a---b---c---|", "---a-------c-|"),
        ({"filter": "message != 'b'"}, "-abc-|", "---a---(c|)"),
        ({"map": "message.upper()"}, "-a---b---|", "---A---B-|"),
        ({"map": "message.upper()"}, "-abc|", "---A-B-(C|)"),
        ({"map": "message if message != 'a' else None"}, "-ab-|", "-----(b|)"),
        ({"scan": {"value": "accumulated + message"}}, "-a--b--c--|", "---u--v--w|"),
        ({"scan": {"value": "accumulated + message", "seed": "."}}, "-a--b----|", "---x--y--|"),
        ({"distinct": "message in 'ab'"}, "-a--b--c---|", "---a-----c-|"),
        ({"switch": TO_UP}, "-a--b--c----d--|", "---a--B--c----D|"),
        ({"parallel": {"agents": ["up", "same"]}}, "-a--b-----c---|", "---p--q-----r-|"),
        ({"parallel": {"agents": ["up", "same"]}}, "-ab|", "---p-(q|)"),
        ({"parallel": {"agents": ["up"], "join": "first"}}, "-a--b-----|", "---A--B---|"),
        ({"parallel": {"agents": ["up", "loud", "same"], "join": "majority"}}, "-a----|", "---A--|"),
    ],
    ids=str,
)
def test_an_operator_that_takes_two_seconds_a_message_behaves_as_its_diagram(step, given, expected):
    shown = {"u": "a", "v": "ab", "w": "abc", "x": ".a", "y": ".ab"} | {"p": REPLIES["x"], "q": REPLIES["y"]}
    time = Timeline()
    stage = time.slow_stage(next(iter(step)), 2, TALKERS)

    assert time.run(time.hot(given).pipe(time.operator(step, stage))) == diagram(expected, shown | {"r": REPLIES["z"]})


def test_a_message_on_which_an_operator_fails_is_left_out_and_the_next_one_has_its_time():
    time = Timeline()
    stage = time.slow_stage("map", 2)

    results = time.run(time.hot("-abc----|").pipe(time.operator({"map": "message + 1 * (message == 'b')"}, stage)))

    assert results == diagram("--------|")
    errors = [result for result in stage.state.results if isinstance(result, StreamError)]
    assert [error.message.content for error in errors] == ["a", "b", "c"]


# --- retry ----------------------------------------------------------------------------------------------


def failing(temporary=True):
    return AgentError("a", "too busy", temporary=temporary)


def attempts(time, *lines, error):
    """A stream that goes as the next of ``lines`` each time it is subscribed to."""
    streams = iter([time.cold(line, error) for line in lines])
    return rx.defer(lambda _: next(streams))


@pytest.mark.parametrize(
    ("retry", "lines", "expected"),
    [
        ({"attempts": 3, "backoff": 1}, ["-(a|)"], "-(a|)"),
        ({"attempts": 3, "backoff": 1}, ["-#", "-(a|)"], "---(a|)"),
        ({"attempts": 3, "backoff": 1}, ["-#", "-#", "-(a|)"], "------(a|)"),
        ({"attempts": 3, "backoff": 1}, ["-#", "-#", "-#"], "------#"),
        ({"attempts": 1, "backoff": 1}, ["-#"], "-#"),
        ({"attempts": 4, "backoff": 2}, ["#", "#", "#", "-(a|)"], "---------------(a|)"),
        ({"attempts": 2, "backoff": 1}, ["-|"], "-|"),
    ],
    ids=str,
)
def test_retry_waits_twice_as_long_after_each_attempt(retry, lines, expected):
    time, error = Timeline(), failing()

    results = time.run(attempts(time, *lines, error=error).pipe(time.operator({"retry": retry})))

    assert results == diagram(expected, error=error)


def test_retry_does_not_double_its_wait_for_ever():
    time, error = Timeline(), failing()
    lines = ["#"] * 9 + ["(a|)"]

    results = time.run(attempts(time, *lines, error=error).pipe(time.operator({"retry": {"attempts": 20}})))

    assert results == [(1 + 2 + 4 + 8 + 16 + 32 + 60 + 60 + 60, "a"), (243, "|")]


@pytest.mark.parametrize(("wished", "expected"), [(5, "-----(a|)"), (0.5, "-(a|)"), (61, "#")])
def test_retry_obeys_a_server_that_says_when_to_ask_again(wished, expected):
    time, error = Timeline(), LLMError("a", "429: too busy", temporary=True)
    error.retry_after = wished

    results = time.run(attempts(time, "#", "(a|)", error=error).pipe(time.operator({"retry": {"attempts": 3}})))

    assert results == diagram(expected, error=error)


def test_an_error_that_will_not_pass_is_not_retried():
    time, error = Timeline(), failing(temporary=False)

    results = time.run(attempts(time, "-#", "-(a|)", error=error).pipe(time.operator({"retry": {"attempts": 3}})))

    assert results == diagram("-#", error=error)


# --- timeout --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", ["-(a|)", "--(a|)", "--|", "-#"])
def test_timeout_leaves_what_comes_in_time_as_it_is(line):
    time, error = Timeline(), failing()

    assert time.run(time.cold(line, error).pipe(time.operator({"timeout": 3}))) == diagram(line, error=error)


@pytest.mark.parametrize(
    ("is_agent", "kind", "text"),
    [
        (True, AgentError, "agent slow: gave nothing within 3 s"),
        (False, StreamError, "route r: slow gave nothing within 3 s"),
    ],
)
def test_timeout_ends_what_is_late_and_says_whose_it_was(is_agent, kind, text):
    time = Timeline()
    late = time.cold("------(a|)")

    ((at, error),) = time.run(late.pipe(time.operator({"timeout": 3}, time.stage("slow", is_agent=is_agent))))

    assert (at, type(error), str(error)) == (3, kind, text)
    assert [(one.subscribe, one.unsubscribe) for one in late.subscriptions] == [(200, 203)], "it is cancelled"


def test_a_step_that_was_late_may_be_tried_again():
    time = Timeline()
    retried = time.operator({"retry": {"attempts": 2, "backoff": 1}})
    step = attempts(time, "------(a|)", "-(b|)", error=failing()).pipe(time.operator({"timeout": 3}), retried)

    assert time.run(step) == diagram("-----(b|)")


# --- parallel: how replies are joined -------------------------------------------------------------------


def join(how, *lines, error=None):
    time = Timeline()
    replies = {name: time.cold(line, error) for name, line in zip("xyz", lines, strict=False)}
    parcels = {name: stream.pipe(ops.map(parcel)) for name, stream in replies.items()}
    results = time.run(how(parcels, parcel("asked"), time.stage("parallel")).pipe(ops.map(content)))
    ends = {name: stream.subscriptions[0].unsubscribe - 200 for name, stream in replies.items()}
    return results, ends


@pytest.mark.parametrize(
    ("lines", "expected", "reply"),
    [
        (["--(a|)", "-(b|)", "---(c|)"], "---(r|)", {"x": "a", "y": "b", "z": "c"}),
        (["--(a|)", "-(a|)"], "--(r|)", {"x": "a", "y": "a"}),
        (["--(a|)", "-|", "---(c|)"], "---(r|)", {"x": "a", "z": "c"}),
        (["--|", "-|"], "--|", None),
    ],
    ids=str,
)
def test_all_waits_for_every_reply_and_lists_them_as_the_agents_are_listed(lines, expected, reply):
    results, _ = join(join_all, *lines)

    assert results == diagram(expected, {"r": reply})
    if reply:
        assert list(results[0][1]) == list(reply)


def test_all_fails_with_the_first_that_fails_and_cancels_the_others():
    error = failing()

    results, ends = join(join_all, "-----(a|)", "--#", "-(c|)", error=error)

    assert results == diagram("--#", error=error)
    assert ends == {"x": 2, "y": 2, "z": 1}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["---(a|)", "-(b|)"], "-(b|)"),
        (["---(a|)", "-#", "--(c|)"], "--(c|)"),
        (["---(a|)", "-|", "-----(c|)"], "---(a|)"),
        (["---#", "-#"], "---#"),
        (["---|", "-#"], "---#"),
        (["---|", "-|"], "---|"),
    ],
    ids=str,
)
def test_first_is_the_first_reply_whoever_fails_or_stays_silent(lines, expected):
    error = failing()

    results, ends = join(join_first, *lines, error=error)

    assert results == diagram(expected, error=error)
    assert max(ends.values()) == results[-1][0], "nobody works on"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["-(a|)", "---(a|)", "-----(b|)"], "---(a|)"),
        (["-(a|)", "---(b|)", "-----(b|)"], "-----(b|)"),
        (["-(a|)", "-#", "---(a|)"], "---(a|)"),
        (["-(a|)", "-|", "---(a|)"], "---(a|)"),
        (["-(a|)"], "-(a|)"),
    ],
    ids=str,
)
def test_majority_goes_on_as_soon_as_more_than_half_agree(lines, expected):
    results, ends = join(join_majority, *lines, error=failing())

    assert results == diagram(expected)
    assert max(ends.values()) == results[-1][0], "nobody works on"


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["-(a|)", "-(b|)", "--(c|)"], "route r: parallel found no majority: at most 1 of 3 agents agree"),
        (["-(a|)", "-(b|)"], "route r: parallel found no majority: at most 1 of 2 agents agree"),
        (["-(a|)", "-|", "--|"], "route r: parallel found no majority: at most 1 of 3 agents agree"),
        (["-(a|)", "-(b|)", "--#"], "agent a: too busy"),
    ],
    ids=str,
)
def test_without_a_majority_the_message_fails(lines, text):
    results, _ = join(join_majority, *lines, error=failing())

    assert str(results[-1][1]) == text
