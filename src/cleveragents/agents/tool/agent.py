"""An agent that is a piece of Python: run in a sandbox, or, where the user asks for it, as ordinary Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cleveragents.agents.agent import Message, Reply
from cleveragents.agents.events import ToolPrinted, tell
from cleveragents.agents.tool.limits import MEMORY_LIMIT, SIZE_LIMIT, TIME_LIMIT, Limits
from cleveragents.agents.tool.output import Printed
from cleveragents.errors import CodeError, InvalidSettingError, InvalidValueError, ToolError
from cleveragents.values.json import dump_json, json_value
from cleveragents.values.merge import difference
from cleveragents.values.text import clean_text


class ToolAgent:
    """Python code that sees ``message``, ``context`` and ``input``, sets ``result`` and changes ``context``.

    ``description`` and ``parameters`` (its arguments by name, each as a JSON schema) tell an llm what the tool
    does and takes. ``time_limit`` is in seconds, ``memory_limit`` in bytes. ``unsafe`` runs the code as ordinary
    Python in a process of its own; only a user may ask for that, never a configuration file. Raises
    InvalidSettingError for a limit that is none.
    """

    def __init__(
        self,
        name: str,
        code: str,
        *,
        description: str = "",
        parameters: Mapping[str, Any] | None = None,
        unsafe: bool = False,
        time_limit: float = TIME_LIMIT,
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        self.name = name
        self.code = clean_text(code)
        self.description = description
        self.parameters = parameters
        self.unsafe = unsafe
        self._limits = Limits(time_limit, memory_limit)

    async def process(self, message: Message) -> Reply:
        """What the code made of ``message``: its result, and what it changed in the context.

        A result of None means that nothing flows on; ``result = message`` passes the message on. Raises
        ToolError when the code fails in any way; the context is as it was then.
        """
        if self.unsafe:
            from cleveragents.agents.tool.unsafe import run_unsafe as run
        else:
            from cleveragents.agents.tool.sandbox import run_sandboxed as run

        printed = Printed()
        try:
            before = _small(message.context, "context")
            variables = {
                "message": _small(message.content, "message"),
                "context": before,
                "input": _small(message.metadata.get("input", {}), "input"),
            }
            result, context = await run(self.code, variables, self._limits, printed)
            changes = difference(before, _mapping(context))
            _check_temperature(changes.set)
        except (CodeError, InvalidValueError) as error:
            raise ToolError(self.name, str(error)) from None
        finally:
            if printed.text:
                tell(ToolPrinted(self.name, printed.text))
        return Reply(result, changes.set, changes.removed)


def _small(value: Any, name: str) -> Any:
    """``value`` as JSON that code can be handed. Raises InvalidValueError."""
    checked = json_value(value, name)
    if len(dump_json(checked)) > SIZE_LIMIT:
        raise InvalidValueError(f"larger than {SIZE_LIMIT // 1_000_000} MB", name)
    return checked


def _check_temperature(changes: Mapping[str, Any]) -> None:
    """Refuse a temperature that no llm agent after this one could obey. Raises CodeError."""
    if changes.get("temperature") is None:
        return
    from cleveragents.config.faults import check_settings

    try:
        check_settings({"temperature": changes["temperature"]})
    except InvalidSettingError as error:
        raise CodeError(f"the context's {error}") from None


def _mapping(context: Any) -> dict[str, Any]:
    if isinstance(context, dict):
        return context
    kind = "null" if context is None else f"a value of type {type(context).__name__}"
    raise CodeError(f"context is a mapping of names to values, and was set to {kind}")
