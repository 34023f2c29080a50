"""Names and ids: parsed into their one stored form, or refused with a reason."""

from __future__ import annotations

import re
import unicodedata

from cleveragents.errors import InvalidNameError, SessionValidationError

MAX_NAME_BYTES = 200

# Device names of Windows: reserved there with any extension, whatever the case, spaces before the dot or not.
_RESERVED = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\..*)?", re.IGNORECASE)
# Letters and marks that show nothing (most are Default_Ignorable_Code_Point): a name of them looks like none, and one
# with them like another.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U00016fe4\U000e0100-\U000e01ef]"
)
_NAMESPACE = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_ACTOR = re.compile(rf"{_NAMESPACE.pattern}/{_NAMESPACE.pattern}")


def context_name(name: str) -> str:
    """The stored form (NFC) of a context's name.

    Visible letters, marks and digits of any script, ``_ - .`` and inner spaces; at most 200 bytes of UTF-8; not
    starting with a dot or ``-``, not ending in a dot, no name reserved on Windows. Raises InvalidNameError.
    """
    if not isinstance(name, str):
        raise InvalidNameError(f"a context's name must be text, not {type(name).__name__}")
    shown = repr(name if len(name) <= 40 else name[:40] + "…")  # noqa: PLR2004
    if not name.strip():
        raise InvalidNameError("a context needs a name that is not empty")
    try:
        stored = unicodedata.normalize("NFC", name)
        size = len(stored.encode())
    except UnicodeEncodeError:
        raise InvalidNameError(f"context name {shown} is not valid Unicode text") from None
    if size > MAX_NAME_BYTES:
        raise InvalidNameError(f"context name {shown} is {size} bytes long; at most {MAX_NAME_BYTES} are allowed")
    _check_characters(stored, shown)
    if stored[0] == "-":
        raise InvalidNameError(f"context name {shown} may not start with '-', which is for options")
    if stored[0] == "." or stored[-1] == ".":
        raise InvalidNameError(f"context name {shown} may not start or end with a dot")
    if stored != stored.strip():
        raise InvalidNameError(f"context name {shown} may not start or end with a space")
    if _RESERVED.fullmatch(stored):
        raise InvalidNameError(f"context name {shown} is reserved on Windows; choose another")
    return stored


def _check_characters(name: str, shown: str) -> None:
    for character in name:
        if character not in "_-. " and unicodedata.category(character)[0] not in "LMN":
            raise InvalidNameError(
                f"context name {shown} contains {character!r}; use letters, digits, '_', '-', '.' and inner spaces"
            )
        if _INVISIBLE.fullmatch(character):
            raise InvalidNameError(
                f"context name {shown} contains U+{ord(character):04X}, which cannot be seen; leave it out"
            )


def same_but_for_case(first: str, second: str) -> bool:
    """Whether two names would share one folder on a file system that ignores case."""
    return _folded(first) == _folded(second)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", name).casefold())


def actor_name(name: str) -> str:
    """An actor's full name ``namespace/name``, checked. Raises SessionValidationError showing the form."""
    if not isinstance(name, str) or not _ACTOR.fullmatch(name):
        raise SessionValidationError(
            f"actor name {name!r:.140} is not of the form namespace/name: lower-case letters, digits, '.', "
            "'_' and '-', each part starting with a letter or digit, at most 64 characters"
        )
    return name


def namespace_name(name: str) -> str:
    """The first part of an actor's name, checked. Raises SessionValidationError showing the form."""
    if not isinstance(name, str) or not _NAMESPACE.fullmatch(name):
        raise SessionValidationError(
            f"namespace {name!r:.70} is not of the form: lower-case letters, digits, '.', '_' and '-', starting "
            "with a letter or digit, at most 64 characters"
        )
    return name
