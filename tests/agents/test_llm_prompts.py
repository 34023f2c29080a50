"""System prompts that show the global context, and can do nothing else."""

import asyncio

import pytest

from cleveragents import LLMAgent
from cleveragents.agents.llm.instructions import MAX_CHARACTERS, instructions
from cleveragents.errors import LLMError
from support.llms import ask

CONTEXT = {
    "name": "Ada",
    "items": ["a", "b"],
    "nested": {"keys": 3, "deep": {"x": "y"}},
    "nothing": None,
    "yes": True,
    "number": 1.5,
    "template": "{{ context.name }}",
    "long": "x" * 10_000,
}


def filled_in(template, context=CONTEXT):
    return asyncio.run(instructions("planner", template, context))


def refusal(template):
    with pytest.raises(LLMError) as caught:
        filled_in(template)
    text = str(caught.value)
    assert text.startswith("agent planner: system prompt")
    assert "\n" not in text
    assert len(text) < 400
    return text


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("Hello {{ context.name }}.\n", "Hello Ada.\n"),
        ("{{ context['name'] }}{{ context.nested.deep.x }}", "Aday"),
        ("{{ context.items }} {{ context.nested.keys }} {{ context.items[1] }}", '["a","b"] 3 b'),
        ("{{ context.nothing }} {{ context.yes }} {{ context.number }}", "null true 1.5"),
        ("{% for item in context.items %}- {{ item }}\n{% endfor %}", "- a\n- b\n"),
        ("{% if context.yes %}on{% else %}off{% endif %}", "on"),
        ("{{ context.missing | default('none') }}", "none"),
        ("{{ context.items | join(', ') }} {{ context.name | upper }} {{ context.items | length }}", "a, b ADA 2"),
        ("{% for key, value in context.nested.deep | items %}{{ key }}={{ value }}{% endfor %}", "x=y"),
        ("{% if context.missing is defined %}is{% endif %}there", "there"),
        ('{"json": {"a": 1}} {# a remark #}{% raw %}{{ kept }}{% endraw %}', '{"json": {"a": 1}} {{ kept }}'),
        ("{{ context.nested | tojson }}", '{"keys":3,"deep":{"x":"y"}}'),
    ],
)
def test_values_of_the_context_are_shown(template, shown):
    assert filled_in(template) == shown


def test_a_value_is_never_a_template_itself():
    assert filled_in("{{ context.template }}") == "{{ context.name }}"


def test_a_missing_key_is_named_with_what_to_do():
    text = refusal("Plan a {{ context.document_type }}.")
    assert "has no 'document_type'" in text
    assert "'context:'" in text
    assert "default" in text


def test_a_name_outside_the_context_is_told_how_to_be_written():
    assert "write {{ context.document_type }}" in refusal("{{ document_type }}")


def test_a_mistake_in_a_template_is_told_with_its_line():
    assert "line 2" in refusal("a\n{{ context.name")
    assert "line 3" in refusal("a\n\n{{ context.name | explode }}")


@pytest.mark.parametrize(
    "template",
    [
        "{{ context.__class__ }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ context.name.upper() }}",
        "{{ context.update({'a': 1}) }}",
        "{{ range(9) }}",
        "{{ self }}",
        "{{ cycler }}",
        "{{ lipsum }}",
        "{{ context.name | attr('upper') }}",
        "{{ context.name | map('upper') }}",
        "{% set a = 1 %}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{% extends 'a' %}",
        "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}",
    ],
)
def test_what_only_shows_nothing_is_refused(template):
    refusal(template)


@pytest.mark.parametrize(
    "template",
    [
        "{{ 'a' * 1000000000 }}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ context.name | center(1000000000) }}",
        "{{ context.long | join(context.long) | join(context.long) }}",
        "{% for a in context.long %}{{ context.long }}{% endfor %}",
        "{% for a in context.long %}" * 3 + "{% endfor %}" * 3,
        "{{ " + "(" * 3000 + "1" + ")" * 3000 + " }}",
    ],
)
def test_a_template_cannot_eat_memory_or_time(template):
    refusal(template)


def test_a_prompt_up_to_the_limit_is_taken():
    assert len(filled_in("{{ context.a }}", {"a": "x" * MAX_CHARACTERS})) == MAX_CHARACTERS


def test_a_prompt_that_cannot_be_rendered_fails_before_anything_is_sent(scripted_llm):
    agent = LLMAgent("planner", "openai:any", base_url=scripted_llm.url, system_prompt="{{ context.kind }}")
    with pytest.raises(LLMError, match="agent planner: system prompt: the global context has no 'kind'"):
        ask(agent)
    assert scripted_llm.requests == []
