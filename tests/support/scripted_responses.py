"""What the scripted server says in OpenAI's responses API: streams of events in place of chunks."""

import json
from typing import Any

from support.scripted_llm import Entry, sends


def responds(text: str, *, why: str | None = None, refusal: str = "", counts: tuple[int, int] = (10, 5)) -> Entry:
    """An answer of ``text``, then a ``refusal``; ``why`` it is incomplete, and its ``counts`` of tokens, in and out."""
    kind = "incomplete" if why else "completed"
    usage = {
        "input_tokens": counts[0],
        "output_tokens": counts[1],
        "total_tokens": sum(counts),
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    ended = {"status": kind, "incomplete_details": {"reason": why} if why else None, "usage": usage}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**_RESPONSE, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **_PLACE, "part": part},
        {"type": "response.output_text.delta", **_PLACE, "delta": text, "logprobs": []},
        *([{"type": "response.refusal.done", **_PLACE, "refusal": refusal}] if refusal else []),
        {"type": f"response.{kind}", "response": {**_RESPONSE, **ended}},
    ]
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return sends("".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in numbered).encode())


_PLACE = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
_RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1_700_000_000,
    "model": "scripted",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
