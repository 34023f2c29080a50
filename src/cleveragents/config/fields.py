"""Single values of a configuration: what is accepted, and in which words the rest is refused."""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NoReturn

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from cleveragents.config.rules import REFUSED, address_fault
from cleveragents.config.templates import template_fault
from cleveragents.values.text import clean_text

NAME_PATTERN = "^[A-Za-z0-9_-]{1,64}$"
"""Names of agents, routes and parameters: what every provider accepts as the name of a tool."""

COMPLAINT = "complaint"
"""Type of an error whose text stands alone, because the value may be a secret or is long."""

_KEY = re.compile(r"(sk|pk|rk|gsk|hf|ghp|xai)[-_]\w[\w-]{7,}|AIza[\w-]{20,}|ey[\w-]{16,}\.[\w.-]+")
_VARIABLE = "[A-Za-z_][A-Za-z0-9_]*"
_PROVIDER_MODEL = r"(?!gguf:)[A-Za-z][\w.-]*:\S+"
LLM_PATTERN = rf"^(?!.*\$\{{)(local$|gguf:\s*\S|{_PROVIDER_MODEL}$)"
"""Names of llms where no server of one's own is named."""
_SHOWN_CHARACTERS = 60
_LARGE = 10**15
JSON_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")


class Section(BaseModel):
    """One section of a configuration: no unknown key, nothing converted silently, never changed."""

    # Inputs stay out of pydantic's own error texts: one of them may be a secret.
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        field_title_generator=lambda name, field: getattr(field, "serialization_alias", None) or name,
    )


def shown(value: object) -> str:
    """``value`` as a fault shows it: on one line, shortened, harmless on a terminal, and never a secret key."""
    if isinstance(value, str):
        return _shown_text(value)
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None or isinstance(value, bool):
        return "nothing" if value is None else str(value).lower()
    if isinstance(value, int | float):
        # Python refuses to write integers of thousands of digits.
        return "a very large number" if isinstance(value, int) and abs(value) >= _LARGE else repr(value)
    return f"a value of type {type(value).__name__}"


def _shown_text(text: str) -> str:
    if looks_like_key(text):
        return "a value that looks like a secret key"
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…")


def looks_like_key(text: str) -> bool:
    """Whether ``text`` has the form of a provider's secret key."""
    return _KEY.match(text.strip()) is not None


def _refuse(reason: str) -> NoReturn:
    raise PydanticCustomError(REFUSED, "{reason}", {"reason": reason})


def _complain(reason: str, line: int = 0) -> NoReturn:
    """``line`` is where in the value's own text, from 1, when the fault is in one line of it."""
    raise PydanticCustomError(COMPLAINT, "{reason}", {"reason": reason, "line": line})


def _template(text: str) -> str:
    text = clean_text(text)
    if fault := template_fault(text):
        _complain(*fault)
    return text


Text = Annotated[str, AfterValidator(clean_text)]
Template = Annotated[str, AfterValidator(_template)]

# --- lists ----------------------------------------------------------------------------------------------


def as_tuple(value: Any) -> Any:
    """A list as a tuple; anything else as it is, to be refused by its type."""
    return tuple(value) if isinstance(value, list) else value


def _names(value: Any) -> Any:
    return (value,) if isinstance(value, str) else as_tuple(value)


def distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    """``names`` if none of them is there twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            _complain(f"{shown(name)} is in the list twice")
        seen.add(name)
    return names


def _some(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        _complain("is empty; expected input or the name of a route")
    return names


def _names_schema(least: int) -> WithJsonSchema:
    items = {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": least}
    return WithJsonSchema({"anyOf": [{"type": "string"}, items]})


Names = Annotated[tuple[str, ...], BeforeValidator(_names), AfterValidator(distinct), _names_schema(0)]
"""Names as a list, or one name as a text."""
Sources = Annotated[Names, AfterValidator(_some), _names_schema(1)]
"""``Names``, at least one."""

# --- connections ----------------------------------------------------------------------------------------


def _expanded(value: Any) -> Any:
    """Each ``${NAME}`` in a text replaced by that environment variable."""
    return re.sub(r"\$\{([^{}]*)(\}?)", _variable, value) if isinstance(value, str) else value


def _variable(match: re.Match[str]) -> str:
    name, closed = match.groups()
    if not closed or not re.fullmatch(_VARIABLE, name):
        _complain("'${' does not begin the name of an environment variable such as ${LLM_URL}")
    value = os.environ.get(name)
    if not value:
        _complain(f"the environment variable {name} is not set")
    return clean_text(value)


def llm_name(name: str) -> str:
    """``name`` if it names an llm; else a ValueError that says what it is not."""
    if "${" in name:
        _refuse("has a variable, as only base_url can; write the name out")
    path = name.removeprefix("gguf:")
    is_path = path != name and bool(path.strip())
    if name != "local" and not is_path and not re.fullmatch(_PROVIDER_MODEL, name):
        _refuse("is not provider:model (such as openai:gpt-5-mini), local, or gguf:/path/to/file.gguf")
    return name


def _served_name(name: str, info: ValidationInfo) -> str:
    """``name`` if it names an llm: at an address of its own a server has names of its own."""
    served = info.data.get("base_url") is not None and name.isprintable() and name.strip()
    return name if served and "${" not in name else llm_name(name)


def _base_url(url: str) -> str:
    if fault := address_fault(url):
        # Without the value: it may hold a password.
        _complain(fault)
    return url


def _variable_name(name: str) -> str:
    secret = looks_like_key(name) or (
        len(name) >= 20 and re.search(r"\d", name) is not None and ("_" not in name or name.upper() != name)  # noqa: PLR2004
    )
    if secret or not re.fullmatch(_VARIABLE, name):
        _complain(
            "is not the name of an environment variable such as OPENAI_API_KEY; "
            "the key itself belongs in the variable, never in a file"
        )
    return name


def _text_schema(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern})


LLMName = Annotated[
    str,
    AfterValidator(_served_name),
    _text_schema(r"^(?!.*\$\{).*\S"),
]
BaseURL = Annotated[
    str,
    BeforeValidator(_expanded),
    AfterValidator(_base_url),
    _text_schema(r"^https?://[^\s/?#][^\s?#]*$|^[^?#]*\$\{[^?#]*$"),
]
VariableName = Annotated[str, AfterValidator(_variable_name), _text_schema(f"^{_VARIABLE}$")]

# --- Python ---------------------------------------------------------------------------------------------


def _parsed(text: str, mode: Literal["exec", "eval"]) -> None:
    try:
        with warnings.catch_warnings():
            # Parsing warns about odd escapes; that is for the sandbox to say when the code runs.
            warnings.simplefilter("ignore")
            ast.parse(text, mode=mode)
    except SyntaxError as error:
        _complain(f"not valid Python: {error.msg}", error.lineno or 0)
    except (ValueError, RecursionError, MemoryError) as error:
        _complain(f"not valid Python: {str(error) or 'nested too deeply'}")


def _code(text: str) -> str:
    if not text.strip():
        _complain("is empty; expected Python code that sets result")
    _parsed(text, "exec")
    return text


def _expression(text: str) -> str:
    if not text.strip():
        _complain("is empty; expected a Python expression")
    _parsed(text.strip(), "eval")
    return text


Code = Annotated[str, AfterValidator(_code), Field(min_length=1)]
Expression = Annotated[str, AfterValidator(_expression), Field(min_length=1)]


Parameter = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                "type": {"anyOf": [{"enum": list(JSON_TYPES)}, {"type": "array", "items": {"enum": list(JSON_TYPES)}}]}
            },
        }
    ),
]
