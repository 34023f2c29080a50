"""Plans that a session is linked to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cleveragents.errors import SessionValidationError
from cleveragents.values.ids import parse_ulid
from cleveragents.values.text import optional_text


@dataclass(frozen=True, slots=True)
class LinkedPlan:
    """A plan outside this project, known by its ULID; ``phase`` and ``state`` are what it last told of itself."""

    plan_id: str
    phase: str | None = None
    state: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "plan_id", parse_ulid(self.plan_id))
        object.__setattr__(self, "phase", optional_text(self.phase, "phase"))
        object.__setattr__(self, "state", optional_text(self.state, "state"))


def plan_ids(plans: Iterable[LinkedPlan]) -> list[str]:
    """The ids of ``plans``, in the order in which they were linked."""
    return [plan.plan_id for plan in plans]


def with_plan(plans: Sequence[LinkedPlan], plan: LinkedPlan) -> list[LinkedPlan]:
    """``plans`` with ``plan`` among them once; what a plan does not tell of itself stays as it was."""
    known = {each.plan_id: each for each in plans}
    old = known.get(plan.plan_id, plan)
    known[plan.plan_id] = LinkedPlan(plan.plan_id, plan.phase or old.phase, plan.state or old.state)
    return list(known.values())


def distinct_plans(plans: Iterable[LinkedPlan]) -> list[LinkedPlan]:
    """``plans`` as a list. Raises SessionValidationError when it names one twice."""
    found = list(plans)
    if len(set(plan_ids(found))) != len(found):
        raise SessionValidationError("linked_plans must name each plan once")
    return found
