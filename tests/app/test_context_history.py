"""What an llm is sent of a context whose messages go to it in roles of their own."""

from cleveragents import AppConfig, CleverAgentsApp, ContextManager, HistoryLeftOut
from support.scripted_llm import says


def test_what_is_left_out_of_a_contexts_messages_is_told_and_nothing_where_all_are_sent(tmp_path, scripted_llm):
    context = ContextManager("talk", tmp_path / "contexts")
    for number in range(4):
        context.add_message("user", f"question {number}")
        context.add_message("assistant", "word " * 400)
    left_out = []

    def listen(event):
        if isinstance(event, HistoryLeftOut):
            left_out.append(event.messages)

    def app(max_tokens):
        agent = {"type": "llm", "llm": "openai:any", "base_url": scripted_llm.url, "max_tokens": max_tokens}
        return CleverAgentsApp(AppConfig.model_validate({"agents": {"a": agent}, "history": {"as": "messages"}}))

    scripted_llm.always(says("Yes."))
    app(100).run_sync("What?", context=context, listener=listen)
    assert left_out == []
    # An llm of which nothing is known holds 16,000 tokens: the answer leaves little room for what was before it.
    app(13_000).run_sync("What?", context=context, listener=listen)
    sent = [message for message in scripted_llm.requests[1]["messages"] if message["role"] != "system"]
    assert 0 < left_out[0] < 10
    assert len(sent) == 10 - left_out[0] + 1
