"""What the strictest of providers demand of a request, for the scripted server to insist on."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from support.scripted_llm import Entry, Exchange, fails

SYSTEM = "Answer in French."

_NEVER = {("user", "user"), ("assistant", "assistant"), ("user", "tool"), ("tool", "user")}


def faults(messages: list[dict[str, Any]], system: str = SYSTEM) -> list[str]:
    """What is wrong with the messages of a request."""
    found = []
    if [message["content"] for message in messages if message["role"] == "system"] != [system]:
        found.append("the system prompt is not there exactly once")
    if [message["role"] for message in messages[:2]] != ["system", "user"]:
        found.append("it does not begin with system and user")
    if messages[-1]["role"] not in {"user", "tool"}:
        found.append("nothing is asked")
    roles = [message["role"] for message in messages]
    found += [f"{second} after {first}" for first, second in pairwise(roles) if (first, second) in _NEVER]
    return [*found, *_unpaired(messages), *filter(None, map(_content, messages))]


def _unpaired(messages: list[dict[str, Any]]) -> Iterator[str]:
    """Calls that are not followed at once by just their results, and results that don't follow their calls."""
    calls: list[str] = []
    for message in messages:
        if message["role"] != "tool":
            if calls:
                yield f"no results of {calls}"
            calls = [call["id"] for call in message.get("tool_calls") or ()]
            if len(set(calls)) < len(calls):
                yield f"the same id twice in {calls}"
        elif message["tool_call_id"] in calls:
            calls.remove(message["tool_call_id"])
        else:
            yield f"a result of {message['tool_call_id']} without its call"
    if calls:
        yield f"no results of {calls}"


def _content(message: dict[str, Any]) -> str | None:
    calls = message.get("tool_calls") or ()
    if not all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls):
        return "arguments that are no object"
    if message["role"] != "tool" and not calls and not (message["content"] or "").strip():
        return f"a message of {message['role']} without content"
    return None


def strictly(entry: Entry) -> Entry:
    """``entry``, for a request without a fault; any other is refused."""

    def answer(exchange: Exchange) -> None:
        found = faults(exchange.request["messages"])
        (fails(400, f"refused: {found}") if found else entry)(exchange)

    return answer
