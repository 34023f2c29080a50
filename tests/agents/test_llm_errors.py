"""What people read when an llm cannot be asked, refuses, or answers with nonsense: one line that helps."""

import json
import socket
import sys

import pytest

from cleveragents import LLMAgent
from support.llms import failure, told
from support.scripted_llm import cuts, fails, hangs, says, sends


def event(delta, **more):
    """One event of a stream, as bytes."""
    return f"data: {json.dumps({'choices': [{'index': 0, 'delta': delta, **more}]})}\n\n".encode()


# --- refusals -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_named_by_its_variable(scripted_llm, agent, status):
    scripted_llm.script(fails(status, "wrong key"))
    assert f"refused the key in OPENAI_API_KEY ({status})" in failure(agent())


def test_an_unknown_model_is_told_as_such(scripted_llm, agent):
    error = {"message": "The model `gpt-9` does not exist", "type": "invalid_request_error", "code": "model_not_found"}
    scripted_llm.script(fails(404, error))
    text = failure(agent("openai:gpt-9"))
    assert "does not know this llm (404)" in text
    assert "check its name" in text


@pytest.mark.parametrize(
    "error",
    [
        {"message": "This model's maximum context length is 10 tokens.", "code": "context_length_exceeded"},
        {"message": "request (9000 tokens) exceeds the available context size (8192 tokens)", "code": 400},
    ],
    ids=["openai", "llama.cpp"],
)
def test_a_conversation_that_is_too_long_is_told_as_such(scripted_llm, agent, error):
    scripted_llm.script(fails(400, error))
    assert "longer than this llm can read" in failure(agent())


def test_a_used_up_quota_is_told_from_a_rate_limit_and_not_asked_for_again(scripted_llm, agent):
    scripted_llm.script(fails(429, {"message": "pay", "type": "insufficient_quota", "code": "insufficient_quota"}))
    assert "quota is used up (429)" in failure(agent())
    assert len(scripted_llm.requests) == 1


def test_another_refusal_shows_what_the_server_said(scripted_llm, agent):
    scripted_llm.script(fails(400, "temperature is\nnot supported"))
    assert failure(agent()).endswith("refused the request (400). It said: temperature is not supported")


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (says(""), "empty answer"),
        (says(" \n "), "empty answer"),
        (says("", finish="length"), "raise 'max_tokens'"),
        (says("", finish="content_filter"), "ask in other words"),
        (sends(event({"refusal": "I will not"}, finish_reason="stop")), "it refuses to answer: I will not"),
    ],
    ids=["empty", "blank", "length", "filter", "refusal"],
)
def test_an_answer_without_text_is_an_error_that_says_why(scripted_llm, agent, entry, text):
    scripted_llm.script(entry)
    assert text in failure(agent(max_tokens=9))


# --- silence, nonsense and broken connections -----------------------------------------------------------------


@pytest.mark.parametrize("entry", [hangs, says("Once upon", then=hangs)], ids=["before", "within"])
def test_a_time_out_names_its_seconds_and_is_not_repeated(scripted_llm, agent, entry):
    scripted_llm.script(entry, says("never"))
    text = failure(agent(timeout=0.5))
    assert "no answer within 0.5 seconds" in text
    assert "'timeout'" in text
    assert len(scripted_llm.requests) == 1


def test_a_connection_cut_within_an_answer_is_an_error_and_the_answer_not_asked_for_twice(scripted_llm, agent):
    scripted_llm.script(says("Once upon", then=cuts), says("never"))
    assert "broke off before the answer was whole" in failure(agent())
    assert len(scripted_llm.requests) == 1


def test_a_stream_that_just_stops_is_not_taken_for_a_whole_answer(scripted_llm, agent):
    scripted_llm.script(sends(event({"content": "Once upon"})))
    assert "broke off before the answer was whole" in failure(agent())


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"hello", "text/plain"),
        (b"<html>Please log in</html>", "text/html"),
        (b'{"answer": 42}', "application/json"),
        (b"[1, 2]", "application/json"),
        (b'{"choices": []}', "application/json"),
        (b'{"choices": [{"message": 5}]}', "application/json"),
        (b"[" * 100_000, "application/json"),
        (b"", "application/json"),
        (b"\xff\xfe\x00", "application/octet-stream"),
    ],
)
def test_an_answer_of_another_form_is_named_with_its_type_and_beginning(scripted_llm, agent, body, kind):
    scripted_llm.script(sends(body, kind))
    text = failure(agent())
    assert f"not of the OpenAI API: {kind}" in text


@pytest.mark.parametrize(
    "body",
    [
        b"data: {nonsense\n\n",
        b"data: \xff\xfe\n\n",
        b"data: 5\n\n",
        b'data: {"choices": 5}\n\n',
        event(7),
        event({"content": 7}),
        event({"content": {"text": "a"}}),
        event({"tool_calls": 7}),
        event({"tool_calls": [{}]}),
        event({"tool_calls": [{"index": 0, "function": {}}]}, finish_reason="stop"),
        event({"tool_calls": [{"index": "a", "function": {"name": 5, "arguments": 6}}]}, finish_reason="tool_calls"),
        b'data: {"error": {"message": "out of memory"}}\n\n',
        b'data: {"error": "out of memory"}\n\n',
        b"data: " + b"[" * 100_000 + b"\n\n",
        b"\x00\xff\xfe",
        b"data: [DONE]\n\n",
        b"",
    ],
)
def test_no_stream_of_nonsense_ends_in_anything_but_one_line(scripted_llm, agent, body):
    scripted_llm.script(sends(body))
    assert len(failure(agent())) < 500


@pytest.mark.parametrize(("status", "tries"), [(200, 1), (400, 1), (500, 3)])
def test_a_page_of_ten_megabytes_becomes_one_short_line(scripted_llm, agent, status, tries):
    scripted_llm.script(*[sends(b"<p>" * 3_500_000, "text/html", status)] * tries)
    assert len(failure(agent())) < 600


def test_a_server_that_says_terminal_escapes_is_shown_harmlessly(scripted_llm, agent):
    scripted_llm.script(fails(400, "a\x1b[31mred\u202eb\x07"))
    text = failure(agent())
    assert text.isprintable()
    assert r"\x1b[31mred" in text


# --- unreachable ----------------------------------------------------------------------------------------------


def test_a_server_that_does_not_run_is_named_by_its_address(agent):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = failure(agent(base_url=f"http://127.0.0.1:{port}/v1"))
    assert f"cannot reach the server at http://127.0.0.1:{port}" in text


def test_a_host_that_is_not_there_is_named(agent):
    text = failure(agent(base_url="http://no-such-host.invalid/v1"))
    assert "cannot find the server at http://no-such-host.invalid" in text


def test_a_server_without_tls_is_told_as_such(scripted_llm, agent):
    text = failure(agent(base_url=scripted_llm.url.replace("http:", "https:")))
    assert "no safe connection to the server at https://127.0.0.1" in text


@pytest.mark.parametrize("address", ["localhost:8080", "ftp://x/v1", "http://", "http://[::1", "http://h:99999/v1", ""])
def test_an_address_that_is_none_is_refused(agent, address):
    assert "'base_url' is not an address" in failure(agent(base_url=address))


@pytest.mark.parametrize("end", ["?key=quiet", "#quiet", "?"])
def test_an_address_with_a_query_or_a_fragment_is_refused_and_not_shown(scripted_llm, agent, end):
    text = failure(agent(base_url=scripted_llm.url + end))
    assert text == (
        "its 'base_url' has a ? or a #, after which the paths of requests would be lost; leave out what follows"
    )
    assert not scripted_llm.requests


# --- names, keys and packages that are missing ----------------------------------------------------------------


@pytest.mark.parametrize("value", [None, "", "  "])
def test_a_named_variable_without_a_key_is_named(scripted_llm, agent, monkeypatch, value):
    monkeypatch.delenv("MY_KEY", raising=False)
    if value is not None:
        monkeypatch.setenv("MY_KEY", value)
    assert "no key; set the environment variable MY_KEY" in failure(agent(api_key_env="MY_KEY"))
    assert scripted_llm.requests == []


@pytest.mark.parametrize(
    ("llm", "variable"),
    [
        ("openai:gpt-5-mini", "OPENAI_API_KEY"),
        ("openai-chat:gpt-5-mini", "OPENAI_API_KEY"),
        ("deepseek:deepseek-chat", "DEEPSEEK_API_KEY"),
        ("openrouter:any", "OPENROUTER_API_KEY"),
    ],
)
def test_without_a_key_the_providers_variable_is_named(monkeypatch, llm, variable):
    for name in (variable, "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    assert f"no key; set the environment variable {variable}" in failure(LLMAgent("planner", llm))


@pytest.mark.parametrize(
    ("llm", "meant"),
    [("opnai:gpt-5-mini", "openai:gpt-5-mini"), ("antropic:claude-x", "anthropic:claude-x"), ("ollma:x", "ollama:x")],
)
def test_a_mistyped_provider_is_told_the_nearest_one(llm, meant):
    assert failure(LLMAgent("planner", llm)).endswith(f"no such provider; did you mean {meant}?")


@pytest.mark.parametrize(
    "llm", ["nobody:x", "gpt-5-mini", "openai", "openai:", ":gpt-5", "", "test", "Local", "local:x"]
)
def test_an_llm_that_no_provider_has_is_told_what_a_name_looks_like(llm):
    text = failure(LLMAgent("planner", llm))
    assert "no such provider" in text
    assert "openai:gpt-5-mini" in text


@pytest.mark.parametrize(
    ("llm", "library", "command"),
    [
        ("groq:llama-3", "groq", "pip install 'cleveragents[groq]'"),
        ("mistral:large", "mistralai", "pip install 'cleveragents[mistral]'"),
        ("cohere:command", "cohere", "pip install 'pydantic-ai-slim[cohere]'"),
    ],
)
def test_a_providers_library_that_is_not_installed_is_named_with_the_command(monkeypatch, llm, library, command):
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"pydantic_ai.providers.{llm.partition(':')[0]}", raising=False)
    assert command in failure(LLMAgent("planner", llm))


def test_what_was_told_before_a_failure_stays_told(scripted_llm, agent):
    scripted_llm.script(says("Once upon", then=cuts), says("a time"))
    failure(agent())
    reply, events = told(agent())
    assert reply.content == "a time"
    assert len(events) == 1
