"""The tree of errors: one root, public, and whole after a process pool has handed an error on."""

import inspect
import pickle

import pytest

import cleveragents
from cleveragents import errors

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


def test_every_public_name_can_be_imported():
    assert [name for name in cleveragents.__all__ if getattr(cleveragents, name, None) is None] == []
    assert set(cleveragents.__all__) - {"__version__"} == set(cleveragents._MODULES)
