"""System prompts as templates that can do nothing but show the global context.

That may still take for ever, and all the memory: ``instructions`` calls ``rendered`` in a process that can be ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, Undefined, UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from cleveragents.agents.llm.instructions import MAX_CHARACTERS, missing_key, shown
from cleveragents.config.templates import FILTERS, RefusedTemplateError, check_tree
from cleveragents.values.json import dump_json

_MISSING = re.compile(r"'([^']*)'( is undefined)?$")


class _RefusedError(Exception):
    """A template asked for something that no prompt needs; the text says what."""


class _Environment(ImmutableSandboxedEnvironment):
    """Looks up keys and indexes, and never an attribute."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        # A key of a mapping is found even when it is called as one of its methods is, such as ``items``.
        return self.getitem(obj, attribute) if isinstance(obj, Mapping) else self.undefined(obj=obj, name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        try:
            return obj[argument]
        except (LookupError, TypeError):
            return self.undefined(obj=obj, name=str(argument))


def rendered(template: str, context: Mapping[str, Any]) -> dict[str, str]:
    """The ``text`` that ``template`` makes of ``context``, or the ``fault`` that keeps it from it."""
    environment = _Environment(undefined=StrictUndefined, keep_trailing_newline=True, finalize=_shown)
    environment.globals.clear()
    environment.filters = {name: environment.filters[name] for name in FILTERS}
    environment.filters |= {"join": _join, "tojson": dump_json}
    try:
        tree = environment.parse(template)
        check_tree(tree)
        return {"text": _bounded(environment.from_string(tree).generate(context=context))}
    except MemoryError:
        raise
    except RefusedTemplateError as error:
        fault = f"line {error.line}: {error.reason}"
    except TemplateSyntaxError as error:
        fault = f", line {error.lineno}: {error.message}"
    except UndefinedError as error:
        fault = _missing(str(error))
    except Exception as error:  # noqa: BLE001 - whatever a template does wrong, the file is at fault, not this code
        fault = " ".join(str(error).split())[:200]
    return {"fault": fault}


def _bounded(pieces: Iterable[str]) -> str:
    taken: list[str] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_CHARACTERS:
            raise _RefusedError(f"it is longer than {MAX_CHARACTERS} characters")
        taken.append(piece)
    return "".join(taken)


def _join(values: Any, separator: str = "") -> str:
    texts = [shown(value) for value in values]
    return _bounded(text for pair in zip([""] + [separator] * (len(texts) - 1), texts, strict=False) for text in pair)


def _shown(value: Any) -> Any:
    """What an expression shows; a missing value goes on, to be refused by name."""
    return value if isinstance(value, Undefined) else shown(value)


def _missing(message: str) -> str:
    match = _MISSING.search(message)
    if match is None:
        return message
    name, outside = match.groups()
    if outside:
        return f"{name!r} is not known in it; write {{{{ context.{name} }}}} for a value of the global context"
    return missing_key(name)
