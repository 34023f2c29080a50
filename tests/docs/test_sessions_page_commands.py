"""docs/sessions.md and docs/commands.md: the session commands, as they stand there."""

import re

from cleveragents.cli.session.group import COMMANDS
from support.pages import page, run_commands

CONFIG = "agents: {assistant: {type: tool, code: result = message}}\n"


def test_every_command_of_the_section_works_as_it_stands_there(tmp_path):
    (tmp_path / "assistant.yaml").write_text(CONFIG, encoding="utf-8")
    (block,) = page("sessions.md").section("From the command line").blocks("console")
    done = run_commands(block, tmp_path)
    assert "user: The meeting is on Friday at ten." in done.stdout
    assert (tmp_path / "meeting.json").exists()
    shown = set(re.findall(r"^\$ cleveragents session ([a-z-]+)", block, flags=re.MULTILINE))
    assert shown == COMMANDS.keys()


def test_the_page_of_commands_has_every_command_and_every_option():
    section = page("commands.md").section("session").text
    rows = re.findall(r"^\| `([a-z-]+)[^|]*((?:\\\||[^|])*)\|", section, flags=re.MULTILINE)
    assert {name for name, _ in rows} == COMMANDS.keys()
    from importlib import import_module

    for name, place in COMMANDS.items():
        if name == "tell":
            continue  # its options are those of run
        module, _, attribute = place.partition(":")
        for parameter in getattr(import_module(module), attribute).params:
            long = max(parameter.opts, key=len)
            if long.startswith("--") and long != "--format":
                shown = long if long != "--follow" else "-f"
                assert shown in section, f"{name} {long}"
