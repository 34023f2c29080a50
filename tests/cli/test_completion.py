"""What the shell completes: names of contexts, ids of sessions, and no error where there are none."""

import pytest

from cleveragents import ContextManager
from support.command import command


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_ids(store, home, shell):
    one, two = store.create("a/b", title="Sea\x1b").session_id, store.create().session_id
    shared = next(one[:length] for length in range(25, 0, -1) if one[:length] == two[:length])

    def completed(*words):
        env = {
            "_CLEVERAGENTS_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": " ".join(["cleveragents", *words]),
            "COMP_CWORD": words[-1] if shell == "fish" else str(len(words) - (not words[-1])),
        }
        done = command(home=home, env=env)
        assert (done.returncode, done.stderr) == (0, "")
        assert "\x1b" not in done.stdout
        return done.stdout

    for words in (
        ["session", "show"],
        ["session", "export"],
        ["session", "list", "--after"],
        ["run", "x", "--session"],
    ):
        assert one in completed(*words, shared)
        assert two in completed(*words, shared)
    only = completed("session", "show", one[: len(shared) + 1])
    assert one in only
    assert two not in only
    assert one.lower() in completed("session", "delete", one[: len(shared) + 1].lower())
    assert shell == "bash" or "Sea" in only
    assert one not in completed("session", "show", "!")
    assert "link-plan" in completed("session", "li")


def test_completion_without_a_database_is_silent(home):
    for url in ("", "nonsense"):
        env = {
            "_CLEVERAGENTS_COMPLETE": "bash_complete",
            "COMP_WORDS": "cleveragents session show ",
            "COMP_CWORD": "3",
            "CLEVERAGENTS_DATABASE_URL": url,
        }
        done = command(home=home, env=env)
        assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
    assert not home.exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_names(notes, root, home, shell):
    ContextManager("nothing", root)
    ContextManager("other", root)

    def completed(*words):
        env = {
            "_CLEVERAGENTS_COMPLETE": f"{shell}_complete",
            "COMP_WORDS": " ".join(["cleveragents", *words]),
            "COMP_CWORD": words[-1] if shell == "fish" else str(len(words)),
        }
        done = command(home=home, env=env)
        assert done.returncode == 0, done.stderr
        return {word for line in done.stdout.splitlines() for word in line.split(",")}

    assert {"notes", "nothing"} <= completed("context", "show", "no")
    assert "other" not in completed("context", "show", "no")
    assert "other" in completed("context", "search", "x", "--context", "o")


def test_completion_without_a_store_is_silent(home):
    env = {"_CLEVERAGENTS_COMPLETE": "bash_complete", "COMP_WORDS": "cleveragents context show ", "COMP_CWORD": "3"}
    done = command(home=home, env=env)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
    assert not home.exists()
