"""``config graph``: what is drawn, and that no text of a file becomes anything but text."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents import AppConfig
from cleveragents.config.graph import FORMATS
from cleveragents.values.text import terminal_text
from support.command import command, one_line

FILE = """
agents:
  planner: {type: llm, llm: local, tools: [count], on_error: backup}
  backup: {type: tool, code: result = 1}
  count: {type: tool, code: result = 1}
  critic: {type: tool, code: result = 1}
routes:
  draft: {from: [input, review], through: [planner, timeout: 3], on_error: skip}
  review:
    from: draft
    through:
      - parallel: {agents: [critic, backup], join: majority}
      - switch: [{when: len(message) > 9, agent: critic}, {agent: backup}]
    until: "context['score'] > 8"
    to: output
  copy: {from: input, to: output}
"""

MERMAID = """\
flowchart LR
    input(["input"])
    output(["output"])
    r0s0t0["count"]
    subgraph g1["draft (on#95;error: skip)"]
        r0s0["planner (on#95;error: backup)"]
        r0s1{{"timeout: 3.0"}}
    end
    subgraph g2["review"]
        r1s0{{"parallel, majority: critic, backup"}}
        r1s1{{"switch: len(message) #62; 9 #8594; critic#59; else #8594; backup"}}
        r1s2{{"until: context#91;#39;score#39;#93; #62; 8"}}
    end
    subgraph g3["copy"]
        r2s0{{"passes on"}}
    end
    r0s0 --> r0s1
    r1s0 --> r1s1
    r1s1 --> r1s2
    input --> r0s0
    r1s2 --> r0s0
    r0s1 --> r1s0
    input --> r2s0
    r1s2 --> output
    r2s0 --> output
    r0s0 -.->|"calls"| r0s0t0
"""

TEXT = """\
draft (on_error: skip): input, review -> planner (on_error: backup) -> timeout: 3.0 -> review
review: draft -> parallel, majority: critic, backup -> switch: len(message) > 9 → critic; else → backup -> \
until: context['score'] > 8 -> draft, output
copy: input -> output
planner calls count
"""


@pytest.fixture
def drawn(tmp_path):
    def draw(*arguments, text=FILE):
        path = tmp_path / "network.yaml"
        path.write_text(text, encoding="utf-8")
        return command("config", "graph", path, *arguments, home=tmp_path / "home")

    return draw


@pytest.mark.parametrize(("arguments", "expected"), [([], MERMAID), (["--format", "text"], TEXT)])
def test_a_network_is_drawn_with_its_routes_steps_and_connections(drawn, arguments, expected):
    done = drawn(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


def test_dot_says_the_same(drawn):
    dot = drawn("--format", "dot").stdout
    edges = re.findall(r"^    (\w+) -> (\w+)( \[label=\"calls\" style=dotted\])?$", dot, flags=re.MULTILINE)
    drawn_by_mermaid = re.findall(r"^    (\w+) -\.?->(?:\|\"calls\"\|)? (\w+)$", MERMAID, flags=re.MULTILINE)
    assert [(source, target) for source, target, _ in edges] == drawn_by_mermaid
    assert r"""r1s2 [label="until: context['score'] > 8" shape=hexagon]""" in dot


def test_one_agent_without_routes_is_drawn_too(drawn):
    done = drawn("--format", "text", text="agents: {echo: {type: tool, code: result = message}}")
    assert done.stdout == "route: input -> echo -> output\n"


def test_a_file_with_a_fault_is_not_drawn(drawn):
    assert "no agent 'b'" in one_line(
        drawn(text="agents: {a: {type: tool, code: x}}\nroutes: {r: {from: input, through: [b], to: output}}"), 2
    )


def test_terminal_escapes_in_a_file_are_shown_not_obeyed(drawn):
    step = """map: "'\\e[31m\\u202e'\""""
    text = f"agents: {{a: {{type: tool, code: x}}}}\nroutes: {{r: {{from: input, through: [{step}], to: output}}}}"
    for format_ in FORMATS:
        shown = drawn("--format", format_, text=text).stdout
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def lines(format_, label):
    label = re.sub(r"[\0\r\n]", " ", label)
    config = AppConfig.model_validate(
        {
            "agents": {"a": {"type": "tool", "code": "result = 1"}},
            "routes": {"r": {"from": "input", "through": [{"map": f"1 # {label}"}], "to": "output"}},
        }
    )
    return list(FORMATS[format_](config))


# Whatever could end a label, begin markup, or be an instruction of its own; it stands in a comment, on one line.
nasty = st.text(
    st.sampled_from("\"'`<>[](){}|\\#;:&%\n\r\t-=x/") | st.characters(codec="utf-8"), max_size=40
) | st.sampled_from(
    ['"]; click r0s0 "javascript:alert(1)"', "<script>alert(1)</script>", "#quot;#93;", "%%{init: {}}%%", "end"]
)


@given(nasty)
def test_no_text_is_more_than_a_label_in_mermaid(text):
    drawing = lines("mermaid", text)
    assert len(drawing) == 8
    assert re.fullmatch(r'        r0s0\{\{"map: 1 #35;(?:[\w .,:()-]|#\d+;)*…?"\}\}', drawing[4].replace("#8230;", "…"))


@given(nasty)
def test_no_text_is_more_than_a_label_in_dot(text):
    drawing = lines("dot", text)
    assert len(drawing) == 11
    assert re.fullmatch(r'        r0s0 \[label="map: 1 #(?:[^"\\]|\\\\|\\")*" shape=hexagon\]', drawing[6])


@given(nasty)
def test_no_text_breaks_a_line_of_text(text):
    (line,) = lines("text", text)
    assert line == terminal_text(line)
    assert len(line.splitlines()) == 1
    assert line.startswith("r: input -> map: 1 #")
    assert line.endswith(" -> output")
