"""The tree of errors: one root, public, and whole after a process pool has handed an error on."""

import inspect
import pickle
import pkgutil
from importlib import import_module
from typing import get_args

import pytest

import cleveragents
from cleveragents import errors
from cleveragents.agents.events import AgentEvent

EVERY = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.CleverAgentsError)]
FACTS = {
    "agent": ("writer", "no luck"),
    "faults": (["a.yaml:1: agents: is missing", "a.yaml:2: routes: unknown key"],),
    "message": ("it failed",),
    "path": ("is no text", "metadata.key"),
    "reason": ("is no text",),
    "route": ("draft", "too far"),
}


def example(kind):
    names = list(inspect.signature(kind.__init__).parameters)[1:]
    error = kind(*FACTS.get(names[0], ("it failed",)))
    if hasattr(error, "temporary"):
        error.temporary = True
    return error


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.__name__)
def test_an_error_is_public_and_survives_pickling(kind):
    assert getattr(cleveragents, kind.__name__) is kind
    assert kind.__name__ in cleveragents.__all__
    error = example(kind)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert type(again) is kind
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


def below(kind):
    return {kind}.union(*map(below, kind.__subclasses__()))


def test_the_tree_has_no_branch_elsewhere():
    for module in pkgutil.walk_packages(cleveragents.__path__, "cleveragents."):
        if not module.name.endswith((".__main__", ".env")) and ".versions." not in module.name:
            import_module(module.name)
    ours = {kind for kind in below(errors.CleverAgentsError) if kind.__module__.startswith("cleveragents")}
    assert ours == set(EVERY)


def test_every_event_and_what_listens_to_them_is_public():
    names = {kind.__name__ for kind in get_args(AgentEvent)} | {"AgentEvent", "Listener"}
    assert names <= set(cleveragents.__all__)


def test_every_public_name_can_be_imported():
    assert [name for name in cleveragents.__all__ if getattr(cleveragents, name, None) is None] == []
    assert set(cleveragents.__all__) - {"__version__"} == set(cleveragents._MODULES)
