"""The sessions that a command works on, open while it does."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from cleveragents.sessions.service import SessionService

_P = ParamSpec("_P")
_T = TypeVar("_T")


def pass_sessions(function: Callable[Concatenate[SessionService, _P], _T]) -> Callable[_P, _T]:
    """Open the sessions for each call of ``function``, hand them to it as its first argument, and close them after."""

    @wraps(function)
    def opening(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        from cleveragents.sessions.open import open_sessions

        with open_sessions() as sessions:
            return function(sessions, *args, **kwargs)

    return opening
