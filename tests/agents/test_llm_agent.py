"""What an llm agent sends to a server, and what it makes of an answer."""

import asyncio
import json
import subprocess
import sys
from dataclasses import replace

import pytest

from cleveragents import LLMAgent, Message, Usage
from cleveragents.agents.events import TextDelta, listening
from support.llms import ask, failure, text_of, told
from support.scripted_llm import fails, hangs, says, sends


@pytest.fixture
def agent(scripted_llm, monkeypatch):
    """Makes agents that ask the scripted server."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def make(llm="openai:gpt-5-mini", **settings):
        return LLMAgent("planner", llm, base_url=scripted_llm.url, **settings)

    return make


def unpriced(reply):
    """What a reply used; prices change, and are tested where they are looked up."""
    return replace(reply.usage, cost=None)


def test_the_answer_is_told_as_it_arrives_and_given_back_whole(scripted_llm, agent):
    scripted_llm.script(says(["The capital ", "is ", "Paris."]))
    reply, events = told(agent())
    assert reply.content == "The capital is Paris."
    assert events == [TextDelta("planner", text) for text in ("The capital ", "is ", "Paris.")]
    assert not reply.changes
    assert not reply.removed


def test_a_first_piece_is_told_before_the_last_has_been_sent(scripted_llm, agent):
    scripted_llm.script(says("Once upon", then=hangs))

    async def first_piece():
        arrived = asyncio.get_running_loop().create_future()
        with listening(arrived.set_result):
            task = asyncio.create_task(agent().process(Message("Tell me.")))
        piece = await arrived
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return piece

    assert asyncio.run(first_piece()) == TextDelta("planner", "Once upon")


def test_the_system_prompt_goes_first_and_once_and_the_message_as_it_is(scripted_llm, agent):
    scripted_llm.script(says("ok"))
    ask(agent(system_prompt="Plan a {{ context.kind }}."), "{{ 7 * 7 }} {name} %s", {"kind": "paper"})
    assert scripted_llm.requests[0]["messages"] == [
        {"role": "system", "content": "Plan a paper."},
        {"role": "user", "content": "{{ 7 * 7 }} {name} %s"},
    ]


def test_without_a_system_prompt_none_is_sent(scripted_llm, agent):
    scripted_llm.script(says("ok"))
    ask(agent())
    assert [message["role"] for message in scripted_llm.requests[0]["messages"]] == ["user"]


@pytest.mark.parametrize("text", ["set A = {1; 2}", "{name}", "{{x}}", "%s %(a)s", "$HOME", "{% if %}"])
def test_c32_text_with_braces_reaches_the_llm_verbatim(scripted_llm, agent, text):
    scripted_llm.script(says(text))
    reply = ask(agent(system_prompt="Plan a {{ context.kind }}."), text, {"kind": text})
    assert [message["content"] for message in scripted_llm.requests[0]["messages"]] == [f"Plan a {text}.", text]
    assert reply.content == text


def test_content_that_is_no_text_reaches_the_llm_as_json(scripted_llm, agent):
    scripted_llm.script(says("ok"))
    ask(agent(), {"words": 3})
    assert scripted_llm.requests[0]["messages"][0]["content"] == '{"words":3}'


@pytest.mark.parametrize(
    ("own", "override", "sent"),
    [(0.9, 0, 0), (0.9, 0.0, 0), (0, None, 0), (0.3, None, 0.3), (None, 2, 2), (1, 1.5, 1.5)],
)
def test_c107_a_temperature_of_zero_is_sent_and_the_contexts_wins(scripted_llm, agent, own, override, sent):
    scripted_llm.script(says("ok"))
    ask(agent(temperature=own), context={} if override is None else {"temperature": override})
    assert scripted_llm.requests[0]["temperature"] == sent


def test_settings_that_nobody_gave_are_not_sent(scripted_llm, agent):
    scripted_llm.script(says("ok"))
    ask(agent())
    assert scripted_llm.requests[0].keys() == {"model", "messages", "stream", "stream_options"}


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("hot", "'hot' is not a number between 0 and 2"),
        ("0.5", "'0.5' is not a number between 0 and 2"),
        (True, "true is not a number between 0 and 2"),
        ([0], "a list is not a number between 0 and 2"),
        (-0.1, "-0.1 is not between 0 and 2"),
        (2.1, "2.1 is not between 0 and 2"),
        (float("nan"), "nan is not between 0 and 2"),
        (float("inf"), "inf is not between 0 and 2"),
        (10**400, "a very large number is not between 0 and 2"),
    ],
)
def test_a_temperature_that_is_none_is_refused_before_anything_is_sent(scripted_llm, agent, value, fault):
    source = "it comes from the global context, where it can be changed or removed"
    assert failure(agent(), context={"temperature": value}) == f"temperature {fault}; {source}"
    assert failure(agent(temperature=value)) == f"temperature {fault}"
    assert scripted_llm.requests == []


def test_max_tokens_and_the_name_after_the_provider_are_sent(scripted_llm, agent):
    scripted_llm.script(says("ok"), says("ok"))
    ask(agent("ollama:llama3:8b", max_tokens=800))
    ask(agent("llama3"))
    assert scripted_llm.requests[0]["model"] == "llama3:8b"
    assert scripted_llm.requests[0]["max_tokens"] == 800
    assert scripted_llm.requests[1]["model"] == "llama3"


def test_usage_counts_cached_tokens_within_the_input(scripted_llm, agent):
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "total_tokens": 1050,
        "prompt_tokens_details": {"cached_tokens": 800},
    }
    scripted_llm.script(says("ok", usage=usage))
    assert unpriced(ask(agent())) == Usage(1000, 50, 800, 1, "openai:gpt-5-mini")


# --- keys -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("llm", "settings", "key"),
    [
        ("openai:gpt-5-mini", {"api_key_env": "MY_KEY"}, "mine"),
        ("openai:gpt-5-mini", {}, "usual"),
        ("openai-chat:gpt-5-mini", {}, "usual"),
        ("deep-seek:chat", {}, "deep"),
    ],
)
def test_the_key_comes_from_the_named_variable_or_the_providers_usual_one(
    scripted_llm, agent, monkeypatch, llm, settings, key
):
    fixture_agent = agent(llm, **settings)
    for name, value in {"MY_KEY": "mine", "OPENAI_API_KEY": " usual\n", "DEEP_SEEK_API_KEY": "deep"}.items():
        monkeypatch.setenv(name, value)
    scripted_llm.script(says("ok"))
    ask(fixture_agent)
    assert scripted_llm.headers[0]["authorization"] == f"Bearer {key}"


def test_a_server_that_needs_no_key_gets_a_placeholder(scripted_llm, agent):
    scripted_llm.script(says("ok"))
    ask(agent("ollama:llama3"))
    assert scripted_llm.headers[0]["authorization"].startswith("Bearer ")


def test_a_providers_own_client_is_asked_without_a_base_url(scripted_llm, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", scripted_llm.url)
    monkeypatch.setenv("MY_KEY", "mine")
    scripted_llm.script(fails(500), says("Paris", usage={"prompt_tokens": 7, "completion_tokens": 2}))
    reply = ask(LLMAgent("planner", "openai-chat:gpt-4o", temperature=0, max_tokens=9, api_key_env="MY_KEY"))
    assert reply.content == "Paris"
    assert unpriced(reply) == Usage(7, 2, 0, 1, "openai-chat:gpt-4o")
    assert len(scripted_llm.requests) == 2
    assert scripted_llm.requests[1]["temperature"] == 0
    assert scripted_llm.headers[1]["authorization"] == "Bearer mine"


# --- answers of unusual form ------------------------------------------------------------------------------------


def test_a_server_that_does_not_stream_is_understood(scripted_llm, agent):
    answer = {
        "choices": [{"message": {"role": "assistant", "content": "Paris"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    scripted_llm.script(sends(json.dumps(answer).encode(), "application/json; charset=utf-8"))
    reply, events = told(agent())
    assert reply.content == text_of(events) == "Paris"
    assert unpriced(reply) == Usage(3, 4, 0, 1, "openai:gpt-5-mini")


def test_a_stream_under_another_content_type_is_understood(scripted_llm, agent):
    chunk = {"choices": [{"index": 0, "delta": {"content": "Paris"}, "finish_reason": "stop"}]}
    scripted_llm.script(sends(f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode(), "text/plain"))
    assert ask(agent()).content == "Paris"


def test_c25_halves_of_a_character_that_arrive_apart_are_put_together(scripted_llm, agent):
    scripted_llm.script(says(["a\ud83d", "\ude00b", "c\udce9", "\ud83d"]))
    reply, events = told(agent(system_prompt="lone \udc00"), "caf\udce9")
    assert reply.content == text_of(events) == "a😀bc\ufffd\ufffd"
    assert [message["content"] for message in scripted_llm.requests[0]["messages"]] == ["lone \ufffd", "caf\ufffd"]


def test_line_ends_and_blanks_of_an_answer_stay_as_they_are(scripted_llm, agent):
    scripted_llm.script(says([" a\r\n", "\n b\x00 "]))
    assert ask(agent()).content == " a\r\n\n b\x00 "


# --- time -----------------------------------------------------------------------------------------------------


def test_an_agent_is_asked_in_one_event_loop_after_another_and_many_times_in_one(scripted_llm, agent):
    scripted_llm.script(*[says("ok")] * 5)
    asked = agent()
    assert [ask(asked).content for _ in range(2)] == ["ok", "ok"]

    async def at_once():
        return await asyncio.gather(*(asked.process(Message("What?")) for _ in range(3)))

    assert [reply.content for reply in asyncio.run(at_once())] == ["ok"] * 3


@pytest.mark.parametrize("entry", [hangs, says("Once upon", then=hangs)], ids=["before", "within"])
def test_cancelling_closes_the_connection_before_or_within_an_answer(scripted_llm, agent, entry):
    asked = asyncio.Event()

    async def cancelled():
        loop = asyncio.get_running_loop()

        def arrived(exchange):
            loop.call_soon_threadsafe(asked.set)
            entry(exchange)

        scripted_llm.script(arrived)
        task = asyncio.create_task(agent().process(Message("What?")))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert scripted_llm.departures.acquire(timeout=20)
    assert len(scripted_llm.requests) == 1


def test_cancelling_ends_the_wait_before_another_try(scripted_llm, agent):
    async def cancelled():
        loop = asyncio.get_running_loop()
        asked = asyncio.Event()

        def failing(exchange):
            fails(500)(exchange)
            loop.call_soon_threadsafe(asked.set)

        scripted_llm.script(failing, says("never"))
        task = asyncio.create_task(agent().process(Message("What?")))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert len(scripted_llm.requests) == 1


def test_a_listener_that_fails_is_not_taken_for_the_llm(scripted_llm, agent):
    scripted_llm.script(says("Paris"))

    def broken(_event):
        raise BrokenPipeError

    with listening(broken), pytest.raises(BrokenPipeError):
        ask(agent())


def test_importing_the_agent_imports_no_library_for_llms():
    code = """if True:
        import sys
        import cleveragents.agents.llm.agent
        from cleveragents import LLMAgent
        LLMAgent("a", "openai:gpt-5-mini", system_prompt="{{ context.a }}", tools=[])
        heavy = {"pydantic_ai", "pydantic", "openai", "httpx", "httpx2", "jinja2", "xllamacpp", "anyio", "ssl"}
        print(sorted(heavy & set(sys.modules)))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    assert done.stderr == ""


def test_nothing_but_the_answer_appears_on_a_users_terminal(scripted_llm):
    code = f"""if True:
        import asyncio
        from cleveragents import LLMAgent, Message
        agent = LLMAgent("a", "openai:gpt-5-mini", base_url={scripted_llm.url!r}, temperature=0)
        print(asyncio.run(agent.process(Message("What?"))).content)
    """
    scripted_llm.script(says("Paris"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("Paris\n", "")
