"""How the replies of several agents to one message become one."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import reactivex as rx
from reactivex import Observable
from reactivex import operators as ops

from cleveragents.agents.agent import ANSWERED_BY
from cleveragents.streams.parcel import Parcel
from cleveragents.streams.stage import Stage

Replies = dict[str, Observable[Parcel]]
"""Streams of one reply, or none, by the agent's name, in the order in which the agents are listed."""

DIGEST_FROM = 64
"""Characters from which on a text is identified by a digest of it."""


def join_all(replies: Replies, parcel: Parcel, stage: Stage) -> Observable[Parcel]:
    """Every reply by its agent's name. One failure is the failure of all."""

    def joined(given: list[tuple[str, Parcel]]) -> Parcel:
        by_name = {name: reply.message.content for name, reply in given}
        listed = {name: by_name[name] for name in replies if name in by_name}
        # Once one of them has answered with the conversation in view, it has been taken.
        way = next((reply for _, reply in given if reply.message.conversation is None), parcel)
        return way.carrying(listed, stage.state.context, {**parcel.message.metadata, ANSWERED_BY: ", ".join(listed)})

    given = rx.merge(*(_with_name(name, reply) for name, reply in replies.items()))
    return given.pipe(ops.to_list(), ops.filter(_any), ops.map(joined))


def join_first(replies: Replies, _: Parcel, __: Stage) -> Observable[Parcel]:
    """The first reply. The other agents are cancelled; one that fails is waited for no longer."""
    survivors, failures = _survivors(replies)

    def none_left(_: Any) -> Observable[Parcel]:
        return rx.throw(failures[0]) if failures else rx.empty()

    return rx.concat(survivors, rx.defer(none_left)).pipe(ops.take(1))


def join_majority(replies: Replies, _: Parcel, stage: Stage) -> Observable[Parcel]:
    """The reply that more than half of the agents agree on, as soon as they do; the other agents are cancelled."""
    survivors, failures = _survivors(replies)
    votes: dict[Any, int] = {}

    def decides(reply: Parcel) -> bool:
        key = identity(reply.message.content)
        votes[key] = votes.get(key, 0) + 1
        return 2 * votes[key] > len(replies)

    def undecided(_: Any) -> Observable[Parcel]:
        if failures:
            return rx.throw(failures[0])
        most = max(votes.values(), default=0)
        return rx.throw(stage.error(f"found no majority: at most {most} of {len(replies)} agents agree"))

    return rx.concat(survivors.pipe(ops.filter(decides)), rx.defer(undecided)).pipe(ops.take(1))


JOINS = {"all": join_all, "first": join_first, "majority": join_majority}


def identity(value: Any) -> Any:
    """What two JSON values have in common if, and only if, they are equal; of bounded size."""
    if type(value) is str and len(value) < DIGEST_FROM:
        return value
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).digest()


def _with_name(name: str, reply: Observable[Parcel]) -> Observable[tuple[str, Parcel]]:
    return reply.pipe(ops.map(lambda given: (name, given)))


def _survivors(replies: Replies) -> tuple[Observable[Parcel], list[Exception]]:
    """The replies as they come, and a list in which the errors of those who failed are put."""
    failures: list[Exception] = []

    def failed(error: Exception, _: Observable[Parcel]) -> Observable[Parcel]:
        failures.append(error)
        return rx.empty()

    return rx.merge(*(reply.pipe(ops.catch(failed)) for reply in replies.values())), failures


def _any(items: list[Any]) -> bool:
    return bool(items)
