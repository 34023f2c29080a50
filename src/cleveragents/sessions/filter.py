"""Which sessions a list is of."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from cleveragents.sessions.session import tag_list
from cleveragents.values.ids import parse_ulid_prefix
from cleveragents.values.names import actor_name, namespace_name
from cleveragents.values.times import utc_time


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Conditions that all have to hold; None is no condition.

    ``since`` and ``until`` are about the last change: from the first on, and before the second. ``id_prefix`` is how
    an id begins, ``imported_checksum`` the checksum of the document that a session was imported from. Raises
    InvalidInputError for what no session can match.
    """

    actor_name: str | None = None
    namespace: str | None = None
    tag: str | None = None
    since: dt.datetime | None = None
    until: dt.datetime | None = None
    id_prefix: str | None = None
    imported_checksum: str | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        if self.actor_name is not None:
            put(self, "actor_name", actor_name(self.actor_name))
        if self.namespace is not None:
            put(self, "namespace", namespace_name(self.namespace))
        if self.tag is not None:
            put(self, "tag", tag_list([self.tag])[0])
        if self.since is not None:
            put(self, "since", utc_time(self.since, "since"))
        if self.until is not None:
            put(self, "until", utc_time(self.until, "until"))
        if self.id_prefix is not None:
            put(self, "id_prefix", parse_ulid_prefix(self.id_prefix))
