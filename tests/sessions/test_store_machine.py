"""Any sequence of calls, by two services on one database, does what a plain dictionary would do."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from cleveragents import MessageDraft, TokenUsage, errors, open_sessions
from cleveragents.values.ids import new_ulid
from support.campaign import campaign

ACTORS = st.sampled_from([None, "team/a", "team/b"])
TAGS = st.lists(st.sampled_from("abc"), max_size=3)
TEXT = st.text(min_size=1, max_size=8).filter(lambda text: not text.isspace())
PLANS = st.sampled_from(["01BX5ZZKBKACTAV9WEVGEMMVRZ", "01ARZ3NDEKTSV4RRFFQ69G5FAV"])
WHICH = st.integers(0, 1)


class Store(RuleBasedStateMachine):
    """The store beside its model; a subclass says which database it is."""

    url = ""
    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.services = [open_sessions(self.url), open_sessions(self.url)]
        for summary in self.services[0].list():
            self.services[0].delete(summary.session_id)
        # What there should be, newest activity last.
        self.model: dict[str, dict[str, Any]] = {}

    def teardown(self) -> None:
        for service in self.services:
            service.close()

    def changed(self, session_id: str) -> dict[str, Any]:
        self.model[session_id] = entry = self.model.pop(session_id)
        return entry

    @rule(target=ids, which=WHICH, actor=ACTORS, tags=TAGS, title=TEXT | st.none())
    def create(self, which, actor, tags, title):
        session_id = self.services[which].create(actor, tags=tags, title=title).session_id
        self.model[session_id] = {
            "actor": actor,
            "tags": sorted(set(tags)),
            "title": title,
            "texts": [],
            "usage": (0, 0, True),
            "plans": {},
            "metadata": {},
        }
        return session_id

    @rule(which=WHICH, session_id=ids, texts=st.lists(TEXT, max_size=3), expect=st.sampled_from([None, 0, 1]))
    def append(self, which, session_id, texts, expect):
        """``expect`` is how far off the caller's idea of the next number is."""
        entry = self.model[session_id]
        expected = None if expect is None else len(entry["texts"]) + expect
        drafts = [MessageDraft("user", text) for text in texts]
        if expect == 1:
            with pytest.raises(errors.SessionConflictError):
                self.services[which].append_all(session_id, drafts, expected_sequence=expected)
            return
        stored = self.services[which].append_all(session_id.lower(), drafts, expected_sequence=expected)
        assert [message.sequence for message in stored] == [
            len(entry["texts"]) + number for number in range(len(texts))
        ]
        self.changed(session_id)["texts"] += texts

    @rule(which=WHICH, session_id=ids, tokens=st.integers(0, 10**6), nano=st.integers(0, 10**12) | st.none())
    def use(self, which, session_id, tokens, nano):
        cost = None if nano is None else nano / 10**9
        total = self.services[which].add_usage(session_id, tokens, 1, cost)
        before, spent, complete = self.changed(session_id)["usage"]
        after = (before + tokens, spent + (nano or 0), complete and nano is not None)
        self.model[session_id]["usage"] = after
        assert (total.input_tokens, total.nano_dollars, total.cost_complete) == after

    @rule(which=WHICH, session_id=ids, plan=PLANS, phase=st.sampled_from([None, "draft", "apply"]))
    def link(self, which, session_id, plan, phase):
        self.services[which].link_plan(session_id, plan, phase)
        plans = self.changed(session_id)["plans"]
        plans[plan] = phase or plans.get(plan)

    @rule(which=WHICH, session_id=ids, title=TEXT | st.none(), tags=TAGS, key=st.sampled_from("xy"), value=TEXT)
    def update(self, which, session_id, title, tags, key, value):
        self.services[which].update(session_id, title=title, tags=tags, metadata={key: value})
        entry = self.changed(session_id)
        entry.update(title=title, tags=sorted(set(tags)), metadata=entry["metadata"] | {key: value})

    @rule(which=WHICH, session_id=consumes(ids))
    def delete(self, which, session_id):
        self.services[which].delete(session_id)
        del self.model[session_id]
        with pytest.raises(errors.SessionNotFoundError):
            self.services[1 - which].append(session_id, "user", "too late")

    @rule(target=ids, which=WHICH, session_id=ids)
    def copy(self, which, session_id):
        document = json.loads(json.dumps(self.services[which].export(session_id)))
        copied = self.services[1 - which].import_(document).session_id
        original = self.model[session_id]
        self.model[copied] = {key: value.copy() if hasattr(value, "copy") else value for key, value in original.items()}
        # It lies as deep in lists as its original; a change brings it up, so that the model needs no clock.
        self.services[which].update(copied, title=original["title"])
        return multiple(copied)

    @rule(which=WHICH)
    def ask_for_the_unknown(self, which):
        with pytest.raises(errors.SessionNotFoundError):
            self.services[which].summary(new_ulid())

    @rule(which=WHICH, actor=ACTORS, tag=st.sampled_from(["a", "b", None]), size=st.integers(1, 3))
    def pages(self, which, actor, tag, size):
        found, after = [], None
        while page := self.services[which].list(limit=size, after=after, actor_name=actor, tag=tag):
            found += [summary.session_id for summary in page]
            after = page[-1]
        assert found == [
            session_id
            for session_id, entry in reversed(self.model.items())
            if actor in {None, entry["actor"]} and (tag is None or tag in entry["tags"])
        ]

    @rule(which=WHICH, session_id=ids, offset=st.integers(0, 5), limit=st.integers(0, 5) | st.none())
    def part(self, which, session_id, offset, limit):
        texts = self.model[session_id]["texts"]
        service = self.services[which]
        end = None if limit is None else offset + limit
        read = service.messages(session_id, limit=limit, offset=offset)
        assert [message.content for message in read] == texts[offset:end]
        last = service.last_messages(session_id, offset)
        assert [message.content for message in last] == texts[len(texts) - min(offset, len(texts)) :]

    @invariant()
    def both_services_see_what_there_is(self):
        for service in self.services:
            listed = service.list()
            assert [summary.session_id for summary in listed] == list(reversed(self.model))
            for summary in listed:
                entry = self.model[summary.session_id]
                assert (summary.actor_name, summary.tags, summary.title) == (
                    entry["actor"],
                    entry["tags"],
                    entry["title"],
                )
                assert summary.message_count == len(entry["texts"])
                assert {plan.plan_id: plan.phase for plan in summary.linked_plans} == entry["plans"]
                tokens, nano, complete = entry["usage"]
                usage = summary.token_usage
                assert (usage.input_tokens, usage.nano_dollars, usage.cost_complete) == (tokens, nano, complete)
                own = {key: value for key, value in summary.metadata.items() if key != "imported_from"}
                assert own == entry["metadata"]
                assert summary.updated_at >= summary.created_at


@pytest.mark.campaign
def test_the_store_behaves_like_its_model(database_url):
    run_state_machine_as_test(
        type("StoreHere", (Store,), {"url": database_url}),
        settings=settings(
            max_examples=campaign(short=20, long=400),
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_totals_equal_the_ledger(sessions):
    session_id = sessions.create().session_id
    for cost in (0.1, 0.2, 0.3, 1e-9):
        sessions.add_usage(session_id, 3, 4, cost)
    whole = sessions.get(session_id)
    total = TokenUsage()
    for entry in whole.usage_entries:
        total = total.plus(entry)
    assert whole.token_usage == total == TokenUsage(12, 16, 0.600000001)
