"""A session that has a bit of everything."""

from cleveragents import MessageDraft, SessionService

PLANS = ["01BX5ZZKBKACTAV9WEVGEMMVRZ", "01ARZ3NDEKTSV4RRFFQ69G5FAV"]
CALLS = [{"id": "c1", "name": "add", "arguments": {"a": 1.0}}, {"id": "c2", "name": "mul", "arguments": {}}]


def fill(sessions: SessionService) -> str:
    """The id of a session that has a bit of everything."""
    session_id = sessions.create(
        "team/bot",
        title="A title",
        automation_level="manual",
        tags=["t1", "t2"],
        metadata={"float": 0.1 + 0.2, "six": 6.0, "small": 0.00001, "big": 2**53 + 1, "nfd": "e\u0301", "none": None},
    ).session_id
    sessions.append_all(
        session_id,
        [
            MessageDraft("system", "Be brief."),
            MessageDraft("user", "a\n"),
            MessageDraft("assistant", None, tool_calls=CALLS, agent="calc"),
            MessageDraft("tool", "a\r\n", tool_call_id="c1"),
            MessageDraft("tool", "a\r", tool_call_id="c2"),
            MessageDraft("user", "look: [image]", parts=["look:", {"image": "data:"}], metadata={"a": {"b": [[], {}]}}),
        ],
    )
    sessions.add_usage(session_id, 1000, 50, 6.0, llm="openai:gpt")
    sessions.add_usage(session_id, 10, 5, 0.00001)
    sessions.add_usage(session_id, 10, 5, None, llm="acme-9")
    for plan in PLANS:
        sessions.link_plan(session_id, plan, "draft")
    return session_id
