"""Operators in a route: which there are, and what they stand between."""

import pytest
from pydantic import ValidationError

from cleveragents import StreamRouter
from cleveragents.config import OPERATORS as CONFIGURABLE
from cleveragents.errors import ConfigError
from cleveragents.streams.operators import OPERATORS
from support.networks import route, run, through


def test_every_operator_that_can_be_written_can_be_run():
    assert set(OPERATORS) == set(CONFIGURABLE.values())


def test_an_operator_that_is_none_is_refused_when_the_router_is_made():
    class Unknown:
        pass

    unknown = route("r", "input").model_copy(update={"through": (Unknown(),)})

    with pytest.raises(ConfigError, match=r"^route r: Unknown is not an operator$"):
        StreamRouter({}, [unknown])


def test_operators_and_agents_stand_in_one_chain():
    router = through({"filter": "message"}, "up", {"map": "message[::-1]"}, "up", up=lambda m: m.content.upper() + "x")

    assert run(router, "ab").outputs == ["XBAx"]


@pytest.mark.parametrize(
    "steps",
    [[{"retry": {"attempts": 2}}], [{"take": 1}, {"timeout": 1}], ["a", {"buffer": {"count": 2}}, {"timeout": 1}]],
)
def test_a_modifier_needs_a_step_that_it_can_modify(steps):
    with pytest.raises(ValidationError, match="must follow the step it is for"):
        route("r", "input", steps, "output")


@pytest.mark.parametrize(
    "step", [{"parallel": {"agents": ["a", "nobody"]}}, {"switch": [{"agent": "nobody"}]}], ids=str
)
def test_agents_named_inside_an_operator_must_be_there(step):
    with pytest.raises(ConfigError, match=r"^route r: through names nobody, which is not an agent$"):
        through(step, a=lambda m: m.content)
