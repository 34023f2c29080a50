"""Runs on sessions: what was stored of them, what an llm was sent, and how one is broken off."""

import asyncio

import pytest

COUNT = {"type": "tool", "code": "context['runs'] = context.get('runs', 0) + 1; result = len(message)"}


def said(sessions, session_id):
    return [(str(message.role), message.content) for message in sessions.messages(session_id)]


def sent(scripted_llm, request=-1):
    """The last request, as roles and contents; a call is shown by its id."""
    return [
        (message["role"], message["content"] or [call["id"] for call in message["tool_calls"]])
        for message in scripted_llm.requests[request]["messages"]
    ]


def cancelled_at(app, session_id, prompt, kind, number=1):
    """Run, and cancel at the given event."""

    async def cancelled():
        reached = asyncio.Event()
        left = number

        def listen(event):
            nonlocal left
            left -= isinstance(event, kind)
            if not left:
                reached.set()

        task = asyncio.create_task(app.run(prompt, session_id=session_id, listener=listen))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
