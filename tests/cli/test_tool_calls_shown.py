"""Calls of tools, as people are shown them: while they run, and in a session afterwards."""

import pytest

from cleveragents import open_sessions
from cleveragents.cli.kit.tool_calls import call_line, result_line
from support.command import command, ok
from support.scripted_llm import says
from support.terminal import on_a_terminal


@pytest.fixture
def shop(tmp_path, scripted_llm):
    path = tmp_path / "shop.yaml"
    path.write_text(
        f"""
agents:
  clerk: {{type: llm, llm: 'openai:any', base_url: '{scripted_llm.url}', tools: [price]}}
  price:
    type: tool
    time_limit: 60
    parameters: {{article: {{type: string}}, count: {{type: integer, default: 1}}}}
    code: |
      result = {{"tea": "3.5\\nper bag"}}[input["article"]]
""",
        encoding="utf-8",
    )
    two = [("price", {"article": "tea", "count": 2}), ("price", {"article": "ink\x1b[31m\n"})]
    scripted_llm.script(says("Let me see.", calls=two), says("It is 7."))
    return path


CALLS = [
    '→ price(article="tea", count=2)',
    "  3.5…",
    '→ price(article="ink\\u001b[31m\\n")',
    "  failed: agent price: KeyError: ink\\x1b[31m (line 1)",
]


def test_a_terminal_shows_calls_and_results_as_they_happen_each_on_its_line(shop, home):
    shown = on_a_terminal("run", shop, "What is tea?", "--new-session", home=home)
    assert "\x1b" not in shown
    assert shown.splitlines()[-6:] == ["Let me see.", *CALLS, "It is 7."]
    in_a_session = on_a_terminal("session", "show", "last", home=home)
    lines = [line.partition("UTC] ")[2] or line for line in in_a_session.splitlines()][-7:]
    assert lines == [
        "user: What is tea?",
        "assistant (clerk): Let me see.",
        *(f"  {CALLS[number]}" for number in (0, 2)),
        *(f"tool (price): {CALLS[number].strip()}" for number in (1, 3)),
        "assistant (clerk): It is 7.",
    ]


def test_off_a_terminal_stdout_is_the_answer_alone_and_calls_are_told_with_v(shop, home, scripted_llm):
    done = command("run", shop, "What is tea?", "-v", home=home)
    assert done.stdout == "Let me see.\n\nIt is 7.\n"
    assert done.stderr.splitlines()[:-1] == CALLS
    scripted_llm.script(says("Hm.", calls=[("price", {"article": "tea"})]), says("It is 7."))
    quiet = command("run", shop, "What is tea?", home=home)
    assert (quiet.stdout, quiet.stderr) == ("Hm.\n\nIt is 7.\n", "")


def test_a_call_is_shown_on_one_short_line_whatever_was_passed():
    assert call_line("price", {}) == "→ price()"
    assert call_line("price", '{"article": "tea"\n, ') == '→ price({"article": "tea" ,)'
    for arguments in ({"text": "x\n" * 5000, "n": [1] * 5000}, dict.fromkeys(map(str, range(5000))), "x y\n" * 5000):
        line = call_line("price", arguments)
        assert len(line) < 250
        assert line.splitlines() == [line]


def test_of_a_result_the_first_line_is_shown_and_that_there_is_more():
    assert result_line("sunny", failed=False) == "sunny"
    assert result_line("\n  sunny\nall day", failed=False) == "sunny…"
    assert result_line("x" * 300, failed=True) == f"failed: {'x' * 200}…"
    assert result_line("", failed=False) == ""


def test_a_call_in_the_form_of_other_programs_is_shown_like_any(home):
    with open_sessions(f"sqlite:///{home / 'cleveragents.db'}") as sessions:
        session_id = sessions.create().session_id
        function = {"name": "weather", "arguments": '{"city": "Oslo"}'}
        sessions.append(session_id, "assistant", None, tool_calls=[{"id": "c1", "function": function}, {"id": "c2"}])
    shown = ok(command("session", "show", session_id, home=home)).splitlines()
    assert shown[-2:] == ['  → weather(city="Oslo")', "  → a tool()"]
