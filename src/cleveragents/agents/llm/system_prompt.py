"""System prompts as templates that can do nothing but show the global context."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, Undefined, UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from cleveragents.config.templates import FILTERS, RefusedTemplateError, check_tree
from cleveragents.errors import LLMError
from cleveragents.values.json import dump_json

MAX_CHARACTERS = 1_000_000
"""The longest system prompt; more than any llm reads."""

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


def render_prompt(agent: str, template: str, context: Mapping[str, Any]) -> str:
    """``template`` with ``{{ context.key }}`` filled in. Raises LLMError that names the agent and what is wrong."""
    environment = _Environment(undefined=StrictUndefined, keep_trailing_newline=True, finalize=_shown)
    environment.globals.clear()
    environment.filters = {name: environment.filters[name] for name in FILTERS}
    environment.filters |= {"join": _join, "tojson": dump_json}
    try:
        tree = environment.parse(template)
        check_tree(tree)
        return _bounded(environment.from_string(tree).generate(context=context))
    except RefusedTemplateError as error:
        reason = f": line {error.line}: {error.reason}"
    except TemplateSyntaxError as error:
        reason = f", line {error.lineno}: {error.message}"
    except UndefinedError as error:
        reason = f": {_missing(str(error))}"
    except Exception as error:  # noqa: BLE001 - whatever a template does wrong, the file is at fault, not this code
        reason = f": {' '.join(str(error).split())[:200]}"
    raise LLMError(agent, f"system prompt{reason}")


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
    texts = [_text(value) for value in values]
    return _bounded(text for pair in zip([""] + [separator] * (len(texts) - 1), texts, strict=False) for text in pair)


def _shown(value: Any) -> Any:
    """What an expression shows; a missing value goes on, to be refused by name."""
    return value if isinstance(value, Undefined) else _text(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dump_json(value)


def _missing(message: str) -> str:
    match = _MISSING.search(message)
    if match is None:
        return message
    name, outside = match.groups()
    if outside:
        return f"{name!r} is not known in it; write {{{{ context.{name} }}}} for a value of the global context"
    return (
        f"the global context has no {name!r}; set it under 'context:', "
        f"or write {{{{ context.{name} | default('…') }}}} in the prompt"
    )
