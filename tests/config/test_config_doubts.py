"""What is allowed, and hardly meant: told by ``config validate`` as warnings."""

import pytest

from cleveragents.config.load import load_with_doubts

AGENTS = "agents:\n  a: {type: tool, code: result = message}\n  b: {type: tool, code: result = message}\n"


@pytest.fixture
def doubts(paper):
    def doubts(text):
        paper.write_text(AGENTS + text, encoding="utf-8")
        return [line.removeprefix("paper.yaml:") for line in load_with_doubts("paper.yaml")[1]]

    return doubts


def test_an_agent_in_no_route_is_told(doubts):
    assert doubts("routes: {r: {from: input, through: [a], to: output}}\n") == [
        "3: agents.b: warning: is in no route, so it is never asked"
    ]


@pytest.mark.parametrize(
    "route",
    [
        "{from: input, through: [a, b], to: output}",
        "{from: input, through: [a], to: output, on_error: b}",
        "{from: input, through: [{parallel: {agents: [a, b]}}], to: output}",
        "{from: input, through: [{switch: [{when: 'True', agent: a}, {agent: b}]}], to: output}",
    ],
)
def test_an_agent_that_is_asked_somewhere_is_fine(doubts, route):
    assert doubts(f"routes: {{r: {route}}}\n") == []


def test_loops_that_split_are_told(doubts):
    lines = doubts("routes:\n  r: {from: [input, r, s], through: [a, b], to: output}\n  s: {from: [r, s]}\n")

    assert [line.split(":")[:3] for line in lines] == [["5", " routes.r", " warning"], ["6", " routes.s", " warning"]]
    assert "splits in a loop: r, s all lead back here" in lines[0]


@pytest.mark.parametrize(
    "routes",
    [
        "  r: {from: [input, r], through: [a, b], to: output, until: 'True'}\n",
        "  r: {from: [input, s], through: [a, b]}\n  s: {from: r}\n  t: {from: r, to: output}\n",
        "  r: {from: [input, s, t], to: output}\n  s: &s {from: r, through: [{filter: 'True'}, a, b]}\n  t: *s\n",
    ],
    ids=["until", "one way back", "a choice"],
)
def test_loops_that_do_not_split_are_fine(doubts, routes):
    assert doubts("routes:\n" + routes) == []
