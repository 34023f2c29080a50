"""``cleveragents context``: look at named contexts, move, copy, mend and remove them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import click

from cleveragents.cli.kit.arguments import as_typed
from cleveragents.cli.kit.command_group import CommandGroup
from cleveragents.cli.kit.confirmation import confirm, yes_option
from cleveragents.cli.kit.context_name import ContextName
from cleveragents.cli.kit.options import export_options, format_option, last_option, max_size_option
from cleveragents.cli.kit.output import for_stdout, say, show_bytes, show_json, warn
from cleveragents.cli.kit.output import show as show_text
from cleveragents.cli.kit.session_id import SessionId
from cleveragents.cli.kit.sessions import pass_sessions
from cleveragents.cli.kit.table import show_rows
from cleveragents.errors import ContextDamagedError, ContextNotFoundError, InvalidNameError
from cleveragents.values.json import dump_json

if TYPE_CHECKING:
    from cleveragents.contexts import ContextManager
    from cleveragents.sessions.service import SessionService

_P = ParamSpec("_P")
_T = TypeVar("_T")

_name_argument = click.argument("name", type=ContextName())


def _pass_context(command: Callable[Concatenate[ContextManager, _P], _T]) -> Callable[..., _T]:
    """Hand ``command`` the context that NAME is the name of, as its first argument."""

    @wraps(command)
    def opening(name: str, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        from cleveragents.contexts import ContextManager

        return command(ContextManager.open(name, on_damage=warn), *args, **kwargs)

    return opening


@click.group(cls=CommandGroup, epilog="Example: cleveragents context show notes --last 5")
def context() -> None:
    """Named contexts: conversations and their state, each in a folder of its own."""


@context.command(
    "list",
    short_help="List all contexts with their last change and size.",
    epilog="Example: cleveragents context list --format json",
)
@format_option
def list_(format_: str) -> None:
    """List all contexts with the time of their last change, the size of their messages, and what is wrong with them."""
    from cleveragents.contexts import describe_contexts

    rows = [
        {
            "name": info.name,
            "updated_at": info.updated_at and info.updated_at.isoformat(timespec="seconds"),
            "size": info.size,
            "problem": info.problem,
        }
        for info in describe_contexts()
    ]
    show_rows(rows, ["name", "updated_at", "size", "problem"], format_)
    if not rows and format_ == "table":
        say("there are no contexts; 'cleveragents run CONFIG PROMPT --context NAME' makes one")


@context.command(
    short_help="Show conversation, state and global context.",
    epilog="Example: cleveragents context show notes --last 5 --metadata",
)
@_name_argument
@last_option
@click.option("--metadata", is_flag=True, help="Each message's metadata too.")
@format_option
@_pass_context
def show(manager: ContextManager, last: int | None, metadata: bool, format_: str) -> None:
    """Show a context: its conversation with times in UTC, its state, global context and metadata.

    As JSON one document, as JSON lines one message a line. Of a damaged context what is readable is shown.
    """
    from cleveragents.contexts.history import history_text

    failures: list[ContextDamagedError] = []

    def readable(read: Callable[[], _T]) -> _T | None:
        try:
            return read()
        except ContextDamagedError as error:
            failures.append(error)
            return None

    if format_ == "table":
        messages = readable(lambda: manager.messages if last is None else manager.last_messages(last))
        if messages:
            show_text(history_text(messages, for_stdout, metadata=metadata))
        for title, content in (readable(lambda: _sections(manager)) or {}).items():
            if content:
                show_text(f"{title.replace('_', ' ')}: {dump_json(content)}")
    else:
        messages = readable(lambda: manager.messages if last is None else manager.last_messages(last))
        rows = None if messages is None else [message.as_dict() for message in messages]
        if format_ == "jsonl":
            show_rows(rows or [], [], format_)
        else:
            sections = readable(lambda: _sections(manager)) or dict.fromkeys(("state", "global_context", "metadata"))
            show_json({"name": manager.name, "messages": rows, **sections})
    _raise_all(failures)


@context.command(epilog="Example: cleveragents context search 'release date' --context notes")
@click.argument("text", callback=as_typed)
@click.option("--context", "name", type=ContextName(), metavar="NAME", help="Search only this context.")
@format_option
def search(text: str, name: str | None, format_: str) -> None:
    """Find the messages that contain TEXT, upper or lower case."""
    from cleveragents.contexts import search_contexts

    found = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal found
        for hit in search_contexts(text, name=name, on_damage=warn):
            found += 1
            shown = {"text": _excerpt(hit.message.text, text)} if format_ == "table" else {}
            yield {"context": hit.context, "number": hit.number, **hit.message.as_dict(), **shown}

    show_rows(rows(), ["context", "number", "role", "text"], format_)
    if not found:
        say(f"no message contains {text!r}")


@context.command(epilog="Example: cleveragents context rename notes notes-2026")
@_name_argument
@click.argument("new_name", type=ContextName())
def rename(name: str, new_name: str) -> None:
    """Give a context another name; refused while a run is using it.

    It also mends a folder whose name is none of a context, as 'cleveragents context list' says.
    """
    from cleveragents.contexts import ContextManager
    from cleveragents.contexts.root import contexts_root, rename_folder
    from cleveragents.values.names import context_name

    try:
        manager = ContextManager.open(name, on_damage=warn)
    except (InvalidNameError, ContextNotFoundError):
        chosen = context_name(new_name)
        if not rename_folder(contexts_root(), name, chosen):
            raise
        say(f"context {name!r} is now {chosen!r}")
        return
    old_name = manager.name
    manager.rename(new_name)
    say(f"context {old_name!r} is now {manager.name!r}")


@context.command(epilog="Example: cleveragents context copy notes notes-experiment")
@_name_argument
@click.argument("new_name", type=ContextName())
@_pass_context
def copy(manager: ContextManager, new_name: str) -> None:
    """Make a new context with everything that is in another."""
    made = manager.copy(new_name)
    say(f"context {manager.name!r} was copied to {made.name!r}")


@context.command(epilog="Example: cleveragents context clear notes --yes")
@_name_argument
@click.option("--everything", is_flag=True, help="State, global context and metadata too.")
@yes_option
@_pass_context
def clear(manager: ContextManager, everything: bool, yes: bool) -> None:
    """Empty a context's conversation; with --everything the rest too. Refused while a run is using it."""
    confirm(f"Empty the conversation{' and everything else' if everything else ''} in context {manager.name!r}?", yes)
    with manager.turn(wait=0):
        manager.clear(everything=everything)
    say(f"context {manager.name!r} was emptied")


@context.command(epilog="Example: cleveragents context delete notes --yes")
@_name_argument
@yes_option
@_pass_context
def delete(manager: ContextManager, yes: bool) -> None:
    """Remove a context and everything in it, damaged or not."""
    confirm(f"Delete context {manager.name!r} and everything in it?", yes)
    manager.delete()
    say(f"context {manager.name!r} was deleted")


@context.command(
    short_help="Write a context to one JSON file with a checksum.",
    epilog="Example: cleveragents context export notes --output backup.json",
)
@_name_argument
@export_options
@_pass_context
def export(manager: ContextManager, output: Path | None, force: bool) -> None:
    """Write everything in a context to one JSON file with a checksum; NAME.context.json unless --output says else."""
    from cleveragents.disk.files import in_blocks

    if output == Path("-"):
        for block in in_blocks(manager.export_pieces()):
            show_bytes(block)
        return
    path = Path(f"{manager.directory.name}.context.json") if output is None else output
    manager.export_to(path, overwrite=force)
    show_text(str(path))


@context.command(
    "import",
    short_help="Make a context of an exported file or of a session.",
    epilog="Example: cleveragents context import backup.json --name notes-restored",
)
@click.argument("file", required=False, type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--from-session", "id_", type=SessionId(), metavar="ID", help="Import this session instead.")
@click.option("--name", type=ContextName(), metavar="NAME", help="The name to import it under.")
@click.option("--force", is_flag=True, help="Replace the context if it is there; it becomes exactly what is imported.")
@max_size_option
def import_(file: Path | None, id_: str | None, name: str | None, force: bool, max_size: int | None) -> None:
    """Make a context of an exported FILE or of a session, under its old name or its id unless --name says another.

    '-' as the FILE is standard input. A file that is incomplete or was changed is refused.
    """
    from cleveragents.contexts import ContextManager

    if file is not None and id_ is None:
        if file != Path("-") and not file.exists():
            raise ContextNotFoundError(f"there is no file {str(file)!r} to import")
        source = sys.stdin.buffer if file == Path("-") else file
        manager = ContextManager.import_from(source, name, replace=force, on_damage=warn, max_size=max_size)
        imported = manager.name
    elif file is None and id_ is not None:
        imported = _from_session(id_, name, replace=force)
    else:
        raise click.UsageError("give either a FILE or --from-session ID")
    say(f"context {imported!r} was imported")


@pass_sessions
def _from_session(sessions: SessionService, id_: str, name: str | None, *, replace: bool) -> str:
    from cleveragents.contexts.root import contexts_root, create_context
    from cleveragents.contexts.transfer import files_of
    from cleveragents.integrations.contexts_and_sessions import context_of_session
    from cleveragents.values.names import context_name

    session = sessions.get(sessions.find(id_))
    chosen = context_name(session.session_id if name is None else name)
    create_context(contexts_root(), chosen, files_of(context_of_session(session, chosen)), replace=replace)
    return chosen


@context.command(
    short_help="Show what cannot be read, and set it aside.", epilog="Example: cleveragents context repair notes --yes"
)
@_name_argument
@yes_option
@_pass_context
def repair(manager: ContextManager, yes: bool) -> None:
    """Show what of a context cannot be read, and set it aside in '.damaged' files beside the rest."""
    damage = manager.damage()
    if not damage:
        say(f"context {manager.name!r} needs no repair")
        return
    for what in damage:
        show_text(what)
    confirm(f"Do this to context {manager.name!r}?", yes)
    manager.repair()
    say(f"context {manager.name!r} was repaired")


@context.command(epilog='Example: ls "$(cleveragents context path notes)"')
@_name_argument
@_pass_context
def path(manager: ContextManager) -> None:
    """Print the folder of a context."""
    print(manager.directory)


def _sections(manager: ContextManager) -> dict[str, Any]:
    return {"state": manager.state, "global_context": manager.global_context, "metadata": manager.metadata}


def _excerpt(text: str, wanted: str, width: int = 80) -> str:
    """A piece of ``text`` around ``wanted``."""
    start = max(0, text.casefold().find(wanted.casefold()) - width // 4)
    piece = text[start : start + width]
    return f"{'…' if start else ''}{piece}{'…' if start + width < len(text) else ''}"


def _raise_all(failures: list[ContextDamagedError]) -> None:
    for failure in failures[1:]:
        say(f"error: {failure}")
    if failures:
        raise failures[0]
