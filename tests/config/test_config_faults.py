"""What a bad file is told: every fault at once, each with its line, its key, and what was expected."""

import pytest

from cleveragents import load_config
from cleveragents.errors import ConfigError


def test_all_faults_of_a_file_come_at_once_in_order_of_line(faults):
    text = """\
    name: Paper
    agents:
      planner:
        type: llm
        llm: gpt
        temperature: 3
        temprature: 3
        tools: [count]
      critic:
        type: critic
      planner: {}
      counter:
        type: tool
        code: |
          result = (
    routes:
      draft:
        from: nowhere
        through: [planner, writer]
      input: {from: input, to: output}
    context: {temperature: hot}
    hop_limit: 0
    history: {messages: -1}
    """
    assert [line.partition(" ")[0] + " " + line.split(" ")[1] for line in faults(text)] == [
        "1: name:",
        "5: agents.planner.llm:",
        "6: agents.planner.temperature:",
        "7: agents.planner.temprature:",
        "8: agents.planner.tools[0]:",
        "10: agents.critic.type:",
        "11: agents.planner:",
        "15: agents.counter.code:",
        "18: routes.draft.from:",
        "19: routes.draft.through[1]:",
        "20: routes.input:",
        "21: context.temperature:",
        "22: hop_limit:",
        "23: history.messages:",
    ]


def test_a_fault_is_one_short_line_whatever_the_file_holds(faults):
    long, wild = "x" * 900, '"a\\n\\e[31m\\u202e\\u2028"'
    lines = faults(
        f"""\
        agents:
          a: {{type: {long * 5}}}
          {long}: {{type: {wild}}}
          {wild}: {{type: llm, llm: {wild}, {wild}: 1}}
        routes:
          r: {{from: {wild}, through: [{wild}, {{{long}: 1}}], to: [{long * 5}]}}
        {long}: {wild}
        """
    )
    assert len(lines) == 10
    assert all(line.isprintable() and len(line) < 400 for line in lines)


def test_a_file_name_cannot_break_the_line_either(tmp_path):
    path = tmp_path / "a\nb\x1b[31m.yaml"
    path.write_text("agents: 3", encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        load_config(path)
    assert len(raised.value.faults) == 1
    assert raised.value.faults[0].isprintable()
