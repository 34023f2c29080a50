"""What an llm sends a tool is held against the tool's parameters before its code runs."""

import socket
from typing import Any

import pytest

from cleveragents import LLMAgent, ToolAgent
from cleveragents.agents.events import ToolCalled, ToolReturned
from cleveragents.agents.llm.parameters import Parameters
from cleveragents.errors import InvalidSettingError, InvalidValueError
from support.llms import told
from support.scripted_llm import calls, says

NUMBER = {"type": "number"}


@pytest.fixture
def called(scripted_llm):
    """Has an llm call a tool that gives its input back; the result, and whether it failed."""

    def called(parameters, arguments):
        tool = ToolAgent("tool", "result = input", parameters=parameters, time_limit=60)
        agent = LLMAgent("planner", "openai:any", base_url=scripted_llm.url, tools=[tool])
        scripted_llm.script(calls("tool", arguments), says("ok"))
        _, events = told(agent)
        (returned,) = (event for event in events if isinstance(event, ToolReturned))
        return returned.content, returned.failed

    return called


def fault(parameters, arguments):
    """What the llm is told of arguments that do not fit."""
    with pytest.raises(InvalidValueError) as caught:
        Parameters("tool", parameters).completed(arguments)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value).removeprefix("the arguments do not fit: ")


def test_c113_a_default_stands_in_for_what_is_left_out(called):
    assert called({"a": NUMBER, "b": {"type": "number", "default": 3}}, {"a": 1}) == ({"a": 1, "b": 3}, False)


def test_c113_arguments_of_a_wrong_type_are_told_by_parameter_and_type_and_the_code_does_not_run(called):
    result, failed = called({"a": NUMBER, "b": NUMBER}, {"a": "1", "b": None})
    assert failed
    assert result == (
        "the arguments do not fit: a must be of type number, not string; b must be of type number, not null"
    )


def test_c113_a_parameter_that_is_missing_is_named_as_missing(called):
    result = called({"a": NUMBER, "b": {"type": "number", "default": 3}}, {"b": 2})
    assert result == ("the arguments do not fit: a is missing", True)


def test_an_argument_that_no_parameter_has_is_told_with_those_there_are(called):
    result = called({"article": {}, "count": {"default": 1}}, {"article": "tea", "quantity": 3})
    assert result == ('the arguments do not fit: there is no parameter "quantity"; there are: article, count', True)


def test_a_tool_without_parameters_is_announced_as_one_and_takes_none(called, scripted_llm):
    assert called({}, {}) == ({}, False)
    announced = scripted_llm.requests[0]["tools"][0]["function"]["parameters"]
    assert (announced["properties"], announced["required"]) == ({}, [])
    assert called({}, {"x": 1}) == ('the arguments do not fit: there is no parameter "x"; it takes none', True)


@pytest.mark.parametrize("nothing", ["null", "", "  ", "{}"])
def test_no_arguments_may_be_written_in_any_way(called, nothing):
    assert called({}, nothing) == ({}, False)
    assert called({"n": {"default": 2}}, nothing) == ({"n": 2}, False)


def test_a_tool_that_says_nothing_of_its_parameters_takes_what_it_is_sent(called):
    assert called(None, {"n": 1}) == ({"n": 1}, False)
    assert called(None, {"message": 5})[1]


def test_the_events_and_the_next_request_show_what_was_sent_and_not_the_defaults(scripted_llm):
    tool = ToolAgent("tool", "result = input", parameters={"a": {"default": 1}}, time_limit=60)
    agent = LLMAgent("planner", "openai:any", base_url=scripted_llm.url, tools=[tool])
    scripted_llm.script(calls("tool", {}), says("ok"))
    _, events = told(agent)
    assert events[0] == ToolCalled("planner", "tool", "call_tool_0", {})
    assert scripted_llm.requests[1]["messages"][1]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_nested_defaults_are_filled_in_and_whole_numbers_are_integers():
    point = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}}}
    parameters = Parameters("tool", {"points": {"type": "array", "items": point}, "by": {"default": {"k": [1]}}})
    completed = parameters.completed({"points": [{"x": 2.0}, {"x": 1, "y": 3}]})
    assert repr(completed) == "{'points': [{'x': 2, 'y': 0}, {'x': 1, 'y': 3}], 'by': {'k': [1]}}"
    completed["by"]["k"].append(2)
    assert parameters.completed({"points": []})["by"] == {"k": [1]}


@pytest.mark.parametrize(
    ("schema", "value", "told"),
    [
        ({"enum": ["C", "F"]}, "K", 'a does not fit \'enum\': ["C","F"]'),
        ({"maximum": 3}, 4, "a does not fit 'maximum': 3"),
        ({"type": ["integer", "null"]}, "1", "a must be of type integer or null, not string"),
        ({"items": {"type": "integer"}}, [1, True], "a[1] must be of type integer, not boolean"),
        ({"required": ["x"]}, {}, "a.x is missing"),
        ({"properties": {"x": NUMBER}}, {"x": "1"}, "a.x must be of type number, not string"),
        ({"pattern": "^[a-z]+$"}, "A", "a does not fit 'pattern': \"^[a-z]+$\""),
        ({"uniqueItems": True}, [1, 2, 1.0], "a does not fit 'uniqueItems': true"),
        ({"multipleOf": 0.5}, 10**400, "the arguments cannot be held against their schema"),
        (
            {"anyOf": [NUMBER, {"type": "null"}]},
            "1",
            "a must be of type number, not string or a must be of type null, not string",
        ),
        ({"not": {"type": "string"}}, "x", "a does not fit 'not' of its schema"),
    ],
)
def test_what_does_not_fit_is_told_by_its_place_and_rule(schema, value, told):
    assert fault({"a": schema}, {"a": value}) == told


def test_what_is_told_is_short_however_much_is_wrong():
    many = fault({"a": {"items": {"type": "string"}}, "b": {"enum": ["x" * 5000]}}, {"a": [1] * 5000, "b": "y"})
    assert len(many) < 1500


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "^(a+)+$"}, "a" * 900 + "!"),
        ({"pattern": "^(a|a)*$"}, "a" * 100_000),
        ({"uniqueItems": True}, [*range(100_000), "x", 1]),
        ({"allOf": [{"items": {"maximum": number}} for number in range(1000)]}, list(range(-200_000, 0))),
    ],
)
def test_schemas_and_arguments_that_would_take_for_ever_come_to_an_end(schema, value):
    assert fault({"a": schema}, {"a": value})


def test_what_is_nested_deeply_is_refused_and_not_a_crash():
    schema: Any = {"type": "integer"}
    value: Any = 1
    for _ in range(190):
        schema, value = {"anyOf": [{"items": schema}]}, [value]
    completed = Parameters("tool", {"a": schema})
    try:
        assert completed.completed({"a": value}) == {"a": value}
    except InvalidValueError as error:
        assert "cannot be held against" in str(error)  # noqa: PT017 - either is right, a traceback is not


def test_nothing_is_fetched_for_a_schema():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"
        for keyword in ("$ref", "$dynamicRef", "$schema", "$id"):
            with pytest.raises(InvalidSettingError, match="nothing is fetched"):
                Parameters("tool", {"a": {"items": [], "anyOf": [{keyword: address}]}})
        with pytest.raises(BlockingIOError):
            server.accept()


def test_from_python_parameters_are_checked_like_those_of_a_file(scripted_llm):
    tool = ToolAgent("tool", "result = 1", parameters={"a": {"type": "int"}})
    agent = LLMAgent("planner", "openai:any", base_url=scripted_llm.url, tools=[tool])
    with pytest.raises(InvalidSettingError, match=r"tool tool: parameters\.a\.type: 'int' is not one of array"):
        told(agent)
