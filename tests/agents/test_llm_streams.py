"""Answers as servers really stream them: what is said is there once, whole and in one form, and nothing floods."""

import json
from typing import Any

import pytest

from cleveragents import ToolAgent
from cleveragents.agents.events import LLMUsed, listening
from support.llms import ask, failure, text_of, told
from support.scripted_llm import Exchange, says, sends

DONE = b"data: [DONE]\n\n"
ADD = ToolAgent("add", "result = str(input['a'])", parameters={"a": {"type": "number"}})


def chunk(delta=None, finish=None, **more):
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}


def event(data):
    return f"data: {json.dumps(data)}\n\n".encode()


def stream(*chunks, end=DONE):
    return sends(b"".join(map(event, chunks)) + end)


def texts(*pieces):
    return stream(*(chunk({"content": piece}) for piece in pieces), chunk({}, "stop"))


def usage_of(agent):
    used = []
    with listening(lambda event: used.append(event.usage) if isinstance(event, LLMUsed) else None):
        ask(agent)
    return [(usage.input_tokens, usage.output_tokens) for usage in used]


@pytest.mark.parametrize(
    "reported",
    [
        [(10, 1), (10, 2), (10, 3), (10, 3)],
        [(10, 3), (10, 3)],
        [(10, None), (None, 3)],
        [(10, 3), (1e30, -1)],
    ],
)
def test_c109_the_usage_of_a_request_is_what_was_reported_last(scripted_llm, agent, reported):
    chunks = [
        chunk({"content": "a"}, usage={"prompt_tokens": asked, "completion_tokens": said, "total_tokens": None})
        for asked, said in reported[:-1]
    ]
    asked, said = reported[-1]
    last = chunk(usage={"prompt_tokens": asked, "completion_tokens": said})
    scripted_llm.script(stream(*chunks, chunk({}, "stop"), last))
    assert usage_of(agent()) == [(10, 3)]


def call(index, given, call_id=None, name=None):
    function = {"arguments": given} | ({"name": name} if name else {})
    return {"tool_calls": [{"index": index, "function": function} | ({"id": call_id} if call_id else {})]}


@pytest.mark.parametrize(
    "deltas",
    [
        [call(0, '{"a": 1}', "c1", "add"), call(1, '{"a": 2}', "c1", "add")],
        [call(0, '{"a": 1}', "c1", "add"), call(0, '{"a": 2}', "c2", "add")],
        [call(0, '{"a"', "c1", "add"), call(0, ": 1}", "c1", "add"), call(0, '{"a": 2}', "c2", "add")],
        [call(0, '{"a": 1}', None, "add"), call(0, '{"a": 2}', None, "add")],
        [call(0, "", "c1", "ad"), call(0, "", None, "d"), call(0, '{"a": 1}'), call(1, {"a": 2}, "", "add")],
    ],
    ids=["one id", "one index", "name repeated", "no ids", "name in pieces"],
)
def test_c112_calls_in_pieces_are_told_apart_and_each_has_an_id_of_its_own(scripted_llm, agent, deltas):
    scripted_llm.script(stream(*map(chunk, deltas), chunk({}, "tool_calls")), says("3"))
    assert ask(agent(tools=[ADD])).content == "3"
    _, asked, first, second = scripted_llm.requests[1]["messages"]
    ids = [each["id"] for each in asked["tool_calls"]]
    assert len(set(ids)) == 2
    assert all(ids)
    assert [each["function"]["name"] for each in asked["tool_calls"]] == ["add", "add"]
    assert [(each["tool_call_id"], each["content"]) for each in (first, second)] == [(ids[0], "1"), (ids[1], "2")]


def test_a_name_that_no_provider_takes_is_not_sent_back(scripted_llm, agent):
    scripted_llm.script(stream(chunk(call(0, "{}", "c1", "no such (tool)")), chunk({}, "tool_calls")), says("Well."))
    assert ask(agent(tools=[ADD])).content == "Well."
    assert scripted_llm.requests[1]["messages"][1]["tool_calls"][0]["function"]["name"] == "no_such__tool_"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "between", ["retry: 3000\n\n", "event: ping\n\n", "id: 1\n: ping\n\n", "data:\n\n", ": one\n: two\n\n"]
)
def test_c115_events_without_data_are_passed_over(scripted_llm, agent, between, end):
    events = [chunk({"content": "Par"}), chunk({"content": "is"}), chunk({}, "stop")]
    text = "".join(between + event(each).decode() for each in events) + between
    scripted_llm.script(sends(text.replace("\n", end).encode() + DONE))
    assert ask(agent()).content == "Paris"


@pytest.mark.parametrize(
    ("entry", "answer"),
    [
        (texts("<think>", "plan", "</think>", "Answer"), "Answer"),
        (texts("<think>plan</think>\n\nAnswer"), "Answer"),
        (texts("<th", "ink>pl", "an</thi", "nk>Ans", "wer"), "Answer"),
        (says("<think>plan</think>Answer"), "Answer"),
        (texts("Wrap it in ", "<think>", " and close it. Then more."), "Wrap it in <think> and close it. Then more."),
        (texts("<think>never", " closed"), "<think>never closed"),
        (texts("<", "b>bold"), "<b>bold"),
    ],
)
def test_c116_reasoning_stands_at_the_beginning_however_it_is_cut_and_nothing_else_is_lost(
    scripted_llm, agent, entry, answer
):
    scripted_llm.script(entry)
    reply, events = told(agent())
    assert reply.content == text_of(events) == answer


def test_c116_a_plain_answer_reads_the_same(scripted_llm, agent):
    message = {"role": "assistant", "content": "<think>plan</think>Answer"}
    answer = {**chunk(), "object": "chat.completion", "choices": [{"index": 0, "message": message}]}
    scripted_llm.script(sends(json.dumps(answer).encode(), "application/json"))
    assert ask(agent()).content == "Answer"


def long_line(exchange: Exchange):
    exchange.start(200, {"Content-Type": "text/event-stream"})
    for _ in range(9):
        exchange.write(b"x" * 1_000_000)


def endless(exchange: Exchange):
    exchange.start(200, {"Content-Type": "text/event-stream"})
    line = event(chunk({"content": "x" * 1_000_000}))
    for _ in range(70):
        exchange.write(line)


MANY = [chunk(call(number, "{}", f"c{number}", "add")) for number in range(129)]
LONG = [chunk(call(0, "x" * 1_000_000, None if number else "c1", None if number else "add")) for number in range(3)]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (long_line, "a line of more than 8 MB"),
        (endless, "an answer of more than 64 MB"),
        (sends(b"x" * 8_000_001, "text/plain"), "an answer of more than 8 MB in one piece"),
        (stream(*MANY), "more than 128 calls of tools"),
        (stream(*LONG), "arguments of more than 2,000,000 characters"),
    ],
    ids=["line", "answer", "plain", "calls", "arguments"],
)
def test_a_server_cannot_flood(scripted_llm, agent, entry, said):
    scripted_llm.script(entry)
    assert f"sent {said}" in failure(agent(tools=[ADD]))


def test_nothing_compressed_is_asked_for(scripted_llm, agent):
    scripted_llm.script(says("Paris"))
    ask(agent())
    assert scripted_llm.headers[0]["accept-encoding"] == "identity"


RESPONSE = {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": [], "parallel_tool_calls": True}
ITEM = {"id": "i", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
HALF_A_RESPONSE: list[dict[str, Any]] = [
    {"type": "response.created", "response": RESPONSE | {"status": "in_progress", "tool_choice": "auto", "tools": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": ITEM},
    {"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "content_index": 0, "delta": "half an"},
]


@pytest.mark.parametrize("llm", ["openai-chat:m", "openai:m"])
def test_half_an_answer_is_an_error_on_a_provider_too(scripted_llm, monkeypatch, agent, llm):
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_llm.url)
    half = b"".join(
        f"event: {each['type']}\n".encode() + event({**each, "sequence_number": number})
        for number, each in enumerate(HALF_A_RESPONSE)
    )
    scripted_llm.always(stream(chunk({"content": "half an"}), end=b"") if "chat" in llm else sends(half))
    assert "broke off before the answer was whole" in failure(agent(llm, base_url=None))
