"""What a system prompt may hold as a template, told without rendering it.

jinja2 is imported for those alone that do more than show keys of the global context.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import nodes

FILTERS = (
    "capitalize", "d", "default", "first", "float", "int", "items", "join", "last", "length", "list", "lower", "round",
    "sort", "string", "title", "tojson", "trim", "truncate", "unique", "upper",
)  # fmt: skip

_MAX_NESTED_LOOPS = 2
# What shows, chooses and repeats. No call, no assignment, no product: a short template stays a short prompt.
_NODES = frozenset({
    "Template", "Output", "TemplateData", "Name", "Getattr", "Getitem", "Slice", "Const", "Tuple", "List", "If",
    "CondExpr", "For", "Filter", "Test", "Compare", "Operand", "And", "Or", "Not", "Add", "Sub", "Neg", "Concat",
})  # fmt: skip
_KNOWN = frozenset({"context", "loop", "true", "false", "none", "True", "False", "None"})
_PLAIN = re.compile(r"\{\{ *context(\.[A-Za-z_]\w*)+ *\}\}")
_MARK = re.compile(r"\{[{%#]")
_RAW = "for braces that stay as they are, write {% raw %} before and {% endraw %} after them"


class RefusedTemplateError(Exception):
    """A template that asks for something that no prompt needs; ``line`` is its own, from 1."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


def template_fault(template: str) -> tuple[str, int] | None:
    """What is wrong with ``template`` whatever the global context holds, and in which of its lines; None if nothing."""
    if not _MARK.search(_PLAIN.sub("", template)):
        return None
    from jinja2 import Environment, TemplateSyntaxError

    try:
        tree = Environment(optimized=False, autoescape=False).parse(template)  # noqa: S701 - a prompt is no page
        check_tree(tree)
        for name in _unknown_names(tree):
            return f"{name.name!r} is not known here; write {{{{ context.{name.name} }}}}, or {_RAW}", name.lineno
    except TemplateSyntaxError as error:
        return f"not a template: {(error.message or '').rstrip('.')}; {_RAW}", error.lineno
    except RefusedTemplateError as error:
        return f"{error.reason}; {_RAW}", error.line
    except RecursionError:
        return "not a template: nested too deeply", 0
    return None


def check_tree(node: nodes.Node, loops: int = 0) -> None:
    """Refuse what no prompt needs in the template ``node``. Raises RefusedTemplateError."""
    kind = type(node).__name__
    if kind not in _NODES:
        reason = f"a prompt shows values, as {{{{ context.key }}}} does; no {kind.lower()} here"
        raise RefusedTemplateError(reason, node.lineno)
    if kind == "Filter" and (name := getattr(node, "name", "")) not in FILTERS:
        raise RefusedTemplateError(f"there is no filter {name!r}; there are {', '.join(FILTERS)}", node.lineno)
    loops += kind == "For"
    if loops > _MAX_NESTED_LOOPS:
        raise RefusedTemplateError(f"more than {_MAX_NESTED_LOOPS} loops inside each other", node.lineno)
    for child in node.iter_child_nodes():
        check_tree(child, loops)


def _unknown_names(tree: nodes.Template) -> Iterator[nodes.Name]:
    """The names that nothing gives a value, but for those of which the template asks whether they have one."""
    from jinja2 import nodes

    names = list(tree.find_all(nodes.Name))
    known = {name.name for name in names if name.ctx == "store"} | _KNOWN
    asked = {id(node.node) for node in tree.find_all(nodes.Filter) if node.name in {"d", "default"}}
    asked |= {id(node.node) for node in tree.find_all(nodes.Test) if node.name in {"defined", "undefined"}}
    yield from (name for name in names if name.name not in known and id(name) not in asked)
