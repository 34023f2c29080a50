"""``cleveragents config``: check configuration files, show or draw one, print the schema for editors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cleveragents.cli.exit_codes import ExitCode, exit_code
from cleveragents.cli.kit.command_group import CommandGroup
from cleveragents.cli.kit.output import say, show
from cleveragents.errors import ConfigError

if TYPE_CHECKING:
    from cleveragents.config import AppConfig


@click.group(cls=CommandGroup, epilog="Example: cleveragents config validate assistant.yaml")
def config() -> None:
    """Check configuration files; show or draw one; print their JSON Schema."""


@config.command(epilog="Example: cleveragents config validate agents/*.yaml")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
def validate(files: tuple[Path, ...]) -> ExitCode:
    """Check each FILE, and name every fault with its line.

    Good files are named on stdout, faults go to stderr as FILE:LINE: key: what is wrong. The exit code is 2
    when any file has one, 3 when all that is wrong is that files are missing. What is allowed and hardly meant, such as
    an agent in no route, is a warning there.
    """
    from cleveragents.config.load import load_with_doubts

    codes: list[ExitCode] = []
    for file in files:
        try:
            loaded, doubts = load_with_doubts(file)
        except ConfigError as error:
            codes.append(exit_code(error))
            for fault in error.faults:
                say(fault)
        else:
            for doubt in doubts:
                say(doubt)
            show(f"{file}: ok ({_count(len(loaded.agents), 'agent')}, {_count(len(loaded.network()), 'route')})")
    return min(codes, default=ExitCode.DONE)


@config.command("show", epilog="Example: cleveragents config show assistant.yaml | jq .agents")
@click.argument("file", type=click.Path(path_type=Path))
def show_file(file: Path) -> None:
    """Show FILE as JSON, with every default filled in."""
    from cleveragents.config import load_config

    _print_json(_settings(load_config(file)))


@config.command(epilog="Example: cleveragents config schema > cleveragents.schema.json")
def schema() -> None:
    """Print the JSON Schema of configuration files.

    An editor with a YAML language server uses it in files whose first line is:
    # yaml-language-server: $schema=cleveragents.schema.json
    """
    from cleveragents.config.schema import json_schema

    _print_json(json_schema())


@config.command(
    short_help="Draw the network of a file.",
    epilog="Example: cleveragents config graph paper.yaml --format dot | dot -Tsvg > paper.svg",
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "format_",
    type=click.Choice(("mermaid", "dot", "text")),
    default="mermaid",
    show_default=True,
    help="Mermaid, as Markdown pages show it; DOT for Graphviz; or a line of text for each route.",
)
def graph(file: Path, format_: str) -> None:
    """Draw the network of FILE: what leads where, through which agents and operators."""
    from cleveragents.config import load_config
    from cleveragents.config.graph import FORMATS

    for line in FORMATS[format_](load_config(file)):
        show(line)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _settings(loaded: AppConfig) -> dict[str, Any]:
    from urllib.parse import urlsplit

    settings = loaded.model_dump(mode="json", by_alias=True)
    for agent in settings["agents"].values():
        if agent.get("base_url"):
            # Whoever puts a password or a token into an address does not want to see it here.
            parts = urlsplit(agent["base_url"])
            agent["base_url"] = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return settings


def _print_json(value: Any) -> None:
    import json

    print(json.dumps(value, indent=2))
