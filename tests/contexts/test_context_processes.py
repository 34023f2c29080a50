"""Several processes at once: everything adds up, or somebody is told."""

import asyncio
import threading

import pytest

from cleveragents import ContextManager, list_contexts
from cleveragents.disk import locks
from cleveragents.errors import ContextBusyError, ContextNotFoundError

COMMON = """
import sys
from pathlib import Path
from cleveragents import ContextManager
from cleveragents.errors import CleverAgentsError
root, me = Path(sys.argv[1]), sys.argv[2]
def ready(what="ready"):
    print(what, flush=True)
    sys.stdin.readline()
"""


def finished(process, sent=""):
    """The output of a process that ended well."""
    out, err = process.communicate(sent, timeout=120)
    assert process.returncode == 0, err
    return out


@pytest.fixture
def together(root, start):
    """Run a program in several processes, let go at one moment; their outputs after that."""

    def running(program, count):
        processes = [start(COMMON + program, root, number) for number in range(count)]
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        return [finished(process) for process in processes]

    return running


def test_eight_processes_add_a_hundred_messages_each(root, together):
    together(
        """
context = ContextManager("talk", root)
ready()
for number in range(100):
    context.add_message("user", f"{me}.{number} " + "ä" * (number * 37 % 3000))
""",
        8,
    )
    context = ContextManager.open("talk", root)
    seen = [message.content.split()[0] for message in context.messages]
    assert len(seen) == 800
    for me in range(8):
        assert [text for text in seen if text.startswith(f"{me}.")] == [f"{me}.{number}" for number in range(100)]
    assert not context.damage()


def test_eight_processes_update_fifty_keys_each(root, together):
    together(
        """
context = ContextManager("talk", root)
ready()
for number in range(50):
    context.update_state({f"{me}.{number}": number, "shared": {me: {str(number): True}}})
""",
        8,
    )
    state = ContextManager.open("talk", root).state
    assert len(state) == 401
    assert all(state[f"{me}.{number}"] == number for me in range(8) for number in range(50))
    assert sum(map(len, state["shared"].values())) == 400


def test_c07_two_that_loaded_the_same_context_both_keep_their_pair_together(root, together):
    ContextManager("talk", root).add_message("user", "before")
    together(
        """
context = ContextManager.open("talk", root)
loaded = context.messages
ready()
with context.turn():
    context.add_message("user", f"question {me}")
    context.add_message("assistant", f"answer {me}")
context.save()
""",
        2,
    )
    seen = [message.content for message in ContextManager.open("talk", root).messages]
    assert seen[0] == "before"
    assert sorted([tuple(seen[1:3]), tuple(seen[3:])]) == [("question 0", "answer 0"), ("question 1", "answer 1")]


def test_eight_processes_make_the_same_context_at_once(root, together):
    for _ in range(3):
        together('ready()\nContextManager("talk", root).add_message("user", me)', 8)
        context = ContextManager.open("talk", root)
        assert sorted(message.content for message in context.messages) == list("01234567")
        context.delete()
    assert sorted(path.name for path in (root / ".locks").iterdir()) == ["~"]


def test_c19_of_names_that_differ_by_case_one_is_made_and_the_others_are_refused(root, together):
    outputs = together(
        """
name = ["alpha", "Alpha", "ALPHA", "aLPHA"][int(me)]
ready()
try:
    ContextManager(name, root).add_message("user", name)
    print("made", name)
except CleverAgentsError as error:
    print(type(error).__name__)
""",
        4,
    )
    made = [output.split()[1] for output in outputs if output.startswith("made")]
    assert made == list_contexts(root)
    assert len(made) == 1
    assert sorted(output.strip() for output in outputs if not output.startswith("made")) == ["ContextExistsError"] * 3


def test_deleting_while_others_write_ends_their_writing_and_leaves_nothing(root, together):
    ContextManager("talk", root).add_message("user", "x")
    outputs = together(
        """
context = ContextManager.open("talk", root)
ready()
try:
    if me == "0":
        context.delete()
    while True:
        context.add_message("user", "x")
        context.update_state({me: 1})
except CleverAgentsError as error:
    print(type(error).__name__)
""",
        4,
    )
    assert outputs == ["ContextNotFoundError\n"] * 4
    assert list_contexts(root) == []
    assert [path.name for path in root.iterdir()] == [".locks"]
    assert [path.name for path in (root / ".locks").iterdir()] == ["~"]


def test_deleting_and_making_again_and_again_while_others_write_never_mixes_two_lives(root, together):
    outputs = together(
        """
ready()
kept = 0
for life in range(60):
    context = ContextManager("talk", root)
    try:
        context.add_message("user", f"{me}.{life}")
        with context.turn():
            context.update_state({me: life})
        if me == "0":
            context.delete()
        elif me == "1":
            context.rename(f"kept-{life}")
            kept += 1
    except CleverAgentsError as error:
        assert type(error).__name__ in {"ContextNotFoundError", "ContextBusyError"}, repr(error)
print(kept)
""",
        4,
    )
    names = list_contexts(root)
    assert len([name for name in names if name != "talk"]) == int(outputs[1])
    for name in names:
        context = ContextManager.open(name, root)
        assert not context.damage()
        assert len(context.messages) == len({message.content for message in context.messages})
        context.delete()
    assert [path.name for path in (root / ".locks").iterdir()] == ["~"]


HOLDER = """
context = ContextManager("talk", root)
with context.turn():
    ready()
"""


def test_a_second_turn_waits_and_is_then_refused(root, start):
    holder = start(COMMON + HOLDER, root, 0)
    assert holder.stdout.readline() == "ready\n"
    context = ContextManager("talk", root)
    with pytest.raises(ContextBusyError, match="'talk'"), context.turn(wait=0.1):
        pass
    waiting = threading.Event()
    have = []

    def wait_for_it():
        waiting.set()
        with context.turn(wait=60):
            have.append(True)

    thread = threading.Thread(target=wait_for_it)
    thread.start()
    waiting.wait()
    finished(holder, "go\n")
    thread.join(60)
    assert have == [True]


def test_waiting_for_a_turn_ends_when_it_is_cancelled(root, start):
    holder = start(COMMON + HOLDER, root, 0)
    assert holder.stdout.readline() == "ready\n"
    context = ContextManager("talk", root)
    cancelled = threading.Event()

    def wait_for_it():
        with context.turn(wait=600, cancelled=cancelled):
            raise AssertionError("another process has the turn")

    async def run():
        async with asyncio.timeout(60):
            waiting = asyncio.create_task(asyncio.to_thread(wait_for_it))
            await asyncio.sleep(0)
            cancelled.set()
            with pytest.raises(ContextBusyError):
                await waiting

    asyncio.run(run())
    finished(holder, "go\n")
    with pytest.raises(ContextBusyError), context.turn(wait=0, cancelled=cancelled):
        pass


def test_a_context_in_use_can_be_deleted_but_not_renamed(root, start):
    holder = start(
        COMMON
        + """
context = ContextManager("talk", root)
with context.turn():
    ready()
    try:
        context.add_message("assistant", "too late")
    except CleverAgentsError as error:
        print(type(error).__name__)
""",
        root,
        0,
    )
    assert holder.stdout.readline() == "ready\n"
    context = ContextManager.open("talk", root)
    with pytest.raises(ContextBusyError):
        context.rename("speech")
    context.delete()
    # A new context of the same name is another one: free to use, and safe from the run that is still going.
    new = ContextManager("talk", root)
    with new.turn(wait=0):
        assert finished(holder, "go\n") == "ContextNotFoundError\n"
    assert new.messages == []


def test_a_reader_never_sees_half_a_message(root, start):
    writer = start(
        COMMON
        + """
context = ContextManager("talk", root)
ready()
for number in range(40):
    context.add_message("user", "x" * 400_000)
""",
        root,
        0,
    )
    assert writer.stdout.readline() == "ready\n"
    told: list[str] = []
    context = ContextManager.open("talk", root, on_damage=told.append)
    writer.stdin.write("go\n")
    writer.stdin.flush()
    lengths = set()
    while writer.poll() is None:
        lengths |= {len(message.content) for message in context.last_messages(2)}
    assert len(context.messages) == 40
    assert lengths <= {400_000}
    assert not told
    with pytest.raises(ContextNotFoundError):
        ContextManager.open("other", root)


def test_who_waited_for_the_lock_of_a_deleted_context_does_not_take_it_for_the_new_ones(tmp_path):
    path = tmp_path / "talk~"
    first = locks.acquire(path, wait=0)
    waiting, got = threading.Event(), []

    def wait_for_it():
        waiting.set()
        got.append(locks.acquire(path, wait=1))

    thread = threading.Thread(target=wait_for_it)
    thread.start()
    waiting.wait()
    # The holder deletes the context and with it the lock's file; somebody makes a new one and holds its lock.
    second = locks.acquire(tmp_path / "new", wait=0)
    (tmp_path / "new").replace(path)
    assert first is not None
    locks.release(first)
    thread.join()
    assert second is not None
    assert got == [None]
    locks.release(second)
    third = locks.acquire(path, wait=0)
    assert third is not None
    locks.release(third)
