"""Every call of two managers on one folder, which stand for two processes, against a model in plain Python."""

import copy
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cleveragents import ContextManager, list_contexts
from cleveragents.errors import ContextBusyError, ContextExistsError, ContextNotFoundError
from support.campaign import campaign

keys = st.sampled_from(["a", "b", "Ä"])
leaves = st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=3)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=2))
changes = st.dictionaries(keys, values, max_size=2)
removals = st.lists(keys | st.lists(keys, min_size=1, max_size=2).map(tuple), max_size=2)
contents = st.text(max_size=20) | st.lists(
    st.dictionaries(st.sampled_from(["text", "image"]), st.text(max_size=5)), max_size=2
)
sections = st.sampled_from(["state", "global_context", "metadata"])
names = st.sampled_from(["one", "two", "One", "three"])
managers = st.integers(0, 1)
TORN = b'{"role":"user","content":"half a mess'


def merged(old, new, removed=()):
    """The rule of merging, written down a second time."""
    result = copy.deepcopy(old)
    for removal in removed:
        *parents, last = [removal] if isinstance(removal, str) else removal
        place = result
        for key in parents:
            place = place.get(key) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place.pop(last, None)
    for key, value in new.items():
        if isinstance(result.get(key), dict) and isinstance(value, dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


class Model:
    """One context as it should be."""

    def __init__(self):
        self.messages = []
        self.state, self.global_context, self.metadata = {}, {}, {}
        self.changed = False
        self.torn = False

    def content(self):
        return (self.messages, self.state, self.global_context, self.metadata)


class TwoManagers(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.root = self.folder / "contexts"
        self.stored = {}  # name: model
        self.held = [None, None]  # of each manager: its name, and the model of the context it was made for
        self.managers = [None, None]
        self.export = None

    def teardown(self):
        shutil.rmtree(self.folder)

    def hold(self, number, manager):
        self.managers[number] = manager
        self.held[number] = (manager.name, self.stored[manager.name])

    def model(self, number):
        """The model of the context that a manager holds; None when that is gone or was replaced."""
        name, model = self.held[number]
        return model if self.stored.get(name) is model else None

    def clashing(self, name):
        return [other for other in self.stored if other.casefold() == name.casefold()]

    def expect_gone(self, call, *arguments, **options):
        with pytest.raises(ContextNotFoundError):
            call(*arguments, **options)

    @initialize()
    def begin(self):
        self.make(0, "one")
        self.make(1, "one")

    @rule(number=managers, name=names)
    def make(self, number, name):
        clashing = self.clashing(name)
        if clashing and clashing != [name]:
            with pytest.raises(ContextExistsError):
                ContextManager(name, self.root)
            return
        self.stored.setdefault(name, Model())
        self.hold(number, ContextManager(name, self.root, on_damage=str))

    @rule(number=managers, name=names)
    def open(self, number, name):
        if name in self.stored:
            self.hold(number, ContextManager.open(name, self.root, on_damage=str))
        else:
            self.expect_gone(ContextManager.open, name, self.root)

    @rule(
        number=managers,
        role=st.sampled_from(["user", "assistant", "system", "tool"]),
        content=contents,
        metadata=changes,
        moment=st.none() | st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    )
    def add_message(self, number, role, content, metadata, moment):
        manager, model = self.managers[number], self.model(number)
        if model is None:
            self.expect_gone(manager.add_message, role, content, metadata, moment)
            return
        added = manager.add_message(role, content, metadata, moment)
        assert (added.role, added.content, added.metadata) == (role, content, metadata)
        assert moment in {None, added.timestamp}
        model.messages.append(added)
        model.changed, model.torn = True, False

    @rule(number=managers, section=sections, new=changes, removed=removals)
    def update(self, number, section, new, removed):
        manager, model = self.managers[number], self.model(number)
        call = getattr(manager, f"update_{section}")
        if model is None:
            self.expect_gone(call, new, removed)
            return
        call(new, removed)
        setattr(model, section, merged(getattr(model, section), new, removed))
        model.changed = model.changed or bool(new or removed)

    @rule(number=managers, everything=st.booleans())
    def clear(self, number, everything):
        manager, model = self.managers[number], self.model(number)
        if model is None:
            self.expect_gone(manager.clear, everything)
            return
        manager.clear(everything)
        model.messages = []
        if everything:
            model.state, model.global_context, model.metadata = {}, {}, {}
        model.changed, model.torn = True, False

    @rule(number=managers)
    def delete(self, number):
        manager = self.managers[number]
        if self.model(number) is None:
            self.expect_gone(manager.delete)
            return
        manager.delete()
        del self.stored[manager.name]

    @rule(number=managers, new_name=names)
    def rename(self, number, new_name):
        manager, model = self.managers[number], self.model(number)
        old_name = manager.name
        if model is None:
            with pytest.raises((ContextNotFoundError, ContextExistsError)):
                manager.rename(new_name)
            return
        if new_name == old_name or set(self.clashing(new_name)) - {old_name}:
            with pytest.raises(ContextExistsError):
                manager.rename(new_name)
            return
        manager.rename(new_name)
        self.stored[new_name] = self.stored.pop(old_name)
        self.hold(number, manager)

    @rule(number=managers, other=managers, new_name=names)
    def copy(self, number, other, new_name):
        manager, model = self.managers[number], self.model(number)
        if model is None:
            self.expect_gone(manager.copy, new_name)
            return
        if self.clashing(new_name):
            with pytest.raises(ContextExistsError):
                manager.copy(new_name)
            return
        made = manager.copy(new_name)
        self.stored[new_name] = self.copied(model)
        self.hold(other, made)

    def copied(self, model):
        made = Model()
        made.messages, made.state, made.global_context, made.metadata = copy.deepcopy(model.content())
        made.changed = True
        return made

    @rule(number=managers)
    def export_to(self, number):
        manager, model = self.managers[number], self.model(number)
        path = self.folder / "export.json"
        if model is None:
            self.expect_gone(manager.export_to, path, overwrite=True)
            return
        manager.export_to(path, overwrite=True)
        self.export = self.copied(model)

    @precondition(lambda self: self.export is not None)
    @rule(number=managers, name=names, replace=st.booleans())
    def import_from(self, number, name, replace):
        path = self.folder / "export.json"
        clashing = self.clashing(name)
        if clashing and not (replace and clashing == [name]):
            with pytest.raises(ContextExistsError):
                ContextManager.import_from(path, name, self.root, replace)
            return
        made = ContextManager.import_from(path, name, self.root, replace, on_damage=str)
        self.stored[name] = self.copied(self.export)
        self.hold(number, made)

    @rule(number=managers)
    def save_and_reload(self, number):
        manager = self.managers[number]
        if self.model(number) is None:
            self.expect_gone(manager.save)
        else:
            manager.save()
        if manager.name in self.stored:
            manager.reload()
            self.hold(number, manager)
        else:
            self.expect_gone(manager.reload)

    @rule(number=managers)
    def one_turn_at_a_time(self, number):
        manager = self.managers[number]
        if self.model(number) is None:
            return
        with manager.turn(wait=0):
            other = ContextManager.open(manager.name, self.root)
            with pytest.raises(ContextBusyError), other.turn(wait=0):
                pass

    @rule(number=managers)
    def a_process_dies_while_it_writes(self, number):
        model = self.model(number)
        if model is None or model.torn:
            return
        with (self.managers[number].directory / "messages.jsonl").open("ab") as file:
            file.write(TORN)
        model.torn = model.changed = True

    @rule(number=managers)
    def repair(self, number):
        manager, model = self.managers[number], self.model(number)
        if model is None:
            return
        assert bool(manager.damage()) == bool(manager.repair()) == model.torn
        model.torn = False

    @rule(number=managers, count=st.integers(0, 12))
    def look(self, number, count):
        manager, model = self.managers[number], self.model(number)
        if model is None:
            self.expect_gone(manager.last_messages, count)
            self.expect_gone(lambda: manager.messages)
            self.expect_gone(lambda: manager.state)
            return
        assert manager.messages == model.messages
        assert manager.last_messages(count) == (model.messages[-count:] if count else [])
        assert len(manager.formatted_history(last=count).splitlines()) >= min(count, len(model.messages))

    @invariant()
    def what_is_on_disk_is_what_the_model_says(self):
        assert list_contexts(self.root) == sorted(self.stored)
        for name, model in self.stored.items():
            context = ContextManager.open(name, self.root, on_damage=str)
            assert context.exists() == model.changed
            content = (context.messages, context.state, context.global_context, context.metadata)
            assert content == model.content()
        hidden = {path.name for path in self.root.iterdir()} - set(self.stored)
        assert hidden == {".locks"}
        locks = {path.name.partition("~")[0] for path in (self.root / ".locks").iterdir()}
        assert locks <= {*self.stored, ""}


TwoManagers.TestCase.settings = settings(
    max_examples=campaign(short=40, long=600),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
pytest.mark.campaign(TwoManagers.TestCase)
test_two_managers_on_one_folder_do_what_the_model_says = TwoManagers.TestCase
