"""A system prompt with the values of the global context in it, whatever its author wrote there.

``{{ context.key }}`` is filled in right here. Any other template is a program, which may take any time and memory, so
that it runs in a process that can be ended.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from cleveragents.errors import CodeError, InvalidValueError, LLMError
from cleveragents.values.json import dump_json

MAX_CHARACTERS = 1_000_000
"""The longest system prompt; more than any llm reads."""

_TIME_LIMIT = 10.0  # seconds, the start of Python included
_MARKS = ("{{", "{%", "{#")
_DOTTED = re.compile(r"\{\{\s*context((?:\.[^\W\d]\w*)+)\s*\}\}")
_RENDER = """
from cleveragents.agents.llm.system_prompt import rendered
result = rendered(message, context)
context = None
"""


async def instructions(agent: str, prompt: str, context: Mapping[str, Any]) -> str:
    """``prompt`` with what it shows of ``context`` filled in.

    Raises LLMError that names the agent and what is wrong, also when a template takes too long or too much memory.
    """
    if not any(mark in prompt for mark in _MARKS):
        return prompt
    try:
        if not any(mark in _DOTTED.sub("", prompt) for mark in _MARKS):
            return _filled_in(prompt, context)
        return await _rendered_apart(prompt, context)
    except (CodeError, InvalidValueError) as error:
        reason = str(error)
    raise LLMError(agent, f"system prompt{'' if reason.startswith(', line ') else ': '}{reason}")


def shown(value: Any) -> str:
    """How a prompt shows a value: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else dump_json(value)


def missing_key(name: str) -> str:
    """What to say when a prompt shows a key that the global context does not have."""
    return (
        f"the global context has no {name!r}; set it under 'context:', "
        f"or write {{{{ context.{name} | default('…') }}}} in the prompt"
    )


def _filled_in(prompt: str, context: Mapping[str, Any]) -> str:
    pieces: list[str] = []
    size = end = 0
    for match in _DOTTED.finditer(prompt):
        value: Any = context
        for name in match[1][1:].split("."):
            if not isinstance(value, Mapping) or name not in value:
                raise CodeError(missing_key(name))
            value = value[name]
        pieces += (prompt[end : match.start()], shown(value))
        end = match.end()
        size += len(pieces[-2]) + len(pieces[-1])
        if size > MAX_CHARACTERS:
            break
    pieces.append(prompt[end:])
    if size + len(pieces[-1]) > MAX_CHARACTERS:
        raise CodeError(f"it is longer than {MAX_CHARACTERS} characters")
    return "".join(pieces)


async def _rendered_apart(prompt: str, context: Mapping[str, Any]) -> str:
    from cleveragents.agents.tool.limits import Limits
    from cleveragents.agents.tool.output import Printed
    from cleveragents.agents.tool.unsafe import run_unsafe

    # The code is ours; what it is handed is not.
    answer, _ = await run_unsafe(_RENDER, {"message": prompt, "context": dict(context)}, Limits(_TIME_LIMIT), Printed())
    match answer:
        case {"text": str(text)}:
            return text
        case {"fault": str(fault)}:
            raise CodeError(fault)
    raise CodeError("it could not be rendered")
