"""Braces in system prompts: what is no template, or names what cannot be there, is told with its line and a way out."""

import pytest

from cleveragents.config.templates import template_fault

RAW = "for braces that stay as they are, write {% raw %} before and {% endraw %} after them"


@pytest.mark.parametrize(
    ("prompt", "fault"),
    [
        ('{{"name": "x"}}', "not a template: expected token 'end of print statement', got ':'; " + RAW),
        ("## Intro {#intro}", "not a template: Missing end of comment tag; " + RAW),
        (r"\SI{%d}{\percent}", "not a template: Encountered unknown tag 'd'; " + RAW),
        ("{{customer}}", "'customer' is not known here; write {{ context.customer }}, or " + RAW),
        (
            "{{ context.items() }}",
            "a prompt shows values, as {{ context.key }} does; no call here; " + RAW,
        ),
    ],
)
def test_c122_braces_that_are_no_template_are_told_with_the_line_of_the_file(faults, prompt, fault):
    text = f"agents:\n  a:\n    type: llm\n    llm: local\n    system_prompt: |\n      Answer so:\n\n      {prompt}\n"

    assert faults(text) == [f"8: agents.a.system_prompt: {fault}"]


def test_c122_every_prompt_is_told_at_once(faults):
    one = "  {}: {{type: llm, llm: local, system_prompt: '{{{{who}}}}'}}\n"

    lines = faults("agents:\n" + one.format("a") + one.format("b") + "routes: {r: {from: input, through: [a, b, c]}}")

    assert [line.split(":")[0] for line in lines] == ["2", "3", "4", "4"]


@pytest.mark.parametrize(
    "prompt",
    [
        '{"name": "x"}',
        "{% raw %}{{customer}} {#x}{% endraw %}",
        "{{ context.name }}",
        "{{ context['name'] | upper }}",
        "{% for item in context.items %}{{ loop.index }} {{ item.name }}{% endfor %}",
        "{{ customer | default('nobody') }}",
        "{% if customer is defined %}{{ context.a }}{% endif %}",
        "{# a remark #}",
    ],
)
def test_c122_what_is_a_template_is_taken(load, prompt):
    config = load(f"agents:\n  a:\n    type: llm\n    llm: local\n    system_prompt: |\n      {prompt}\n")

    assert config.agents["a"].system_prompt == prompt + "\n"


@pytest.mark.parametrize("prompt", ["{{ " + "(" * 5_000, "{{ " + "-" * 5_000 + "1 }}", "{{ 'a' | center(999999999) }}"])
def test_reading_a_template_ends(prompt):
    assert template_fault(prompt)


def test_a_filter_that_is_not_there_is_told(faults):
    (line,) = faults("agents: {a: {type: llm, llm: local, system_prompt: '{{ context.a | markdown }}'}}")

    assert line.startswith("1: agents.a.system_prompt: there is no filter 'markdown'; there are capitalize, d, default")


def test_an_unquoted_colon_is_told_how_to_write(faults):
    (line,) = faults("agents:\n  a:\n    type: llm\n    llm: local\n    system_prompt: Note: be brief\n")

    assert line == "5: not YAML: a ': ' stands in a value that is not quoted; quote it, or begin a block with |"


def test_a_wrong_type_hides_no_other_fault(faults):
    text = """\
        agents:
          a: {type: lmm, llm: local, max_token: 3}
          b: {type: tol, code: "result = ("}
          c: {llm: local, temperature: 3}
        routes: {r: {from: input, through: [a, b, c], to: output}}
        """
    assert faults(text) == [
        "2: agents.a.max_token: unknown key; did you mean max_tokens?",
        "2: agents.a.type: 'lmm' is no type of agent; expected llm or tool",
        "3: agents.b.code: not valid Python: '(' was never closed",
        "3: agents.b.type: 'tol' is no type of agent; expected llm or tool",
        "4: agents.c.temperature: 3 is not between 0 and 2",
        "4: agents.c.type: is missing; expected llm or tool",
    ]
