"""The rules of the session model that need no database."""

import datetime as dt
import decimal
import fractions

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleveragents import (
    AutomationLevel,
    LinkedPlan,
    MessageDraft,
    MessageRole,
    Session,
    SessionMessage,
    TokenUsage,
    errors,
)
from cleveragents.conversation.usage import MAX_COUNT, NANO, UsageEntry, dollars, money_text, parse_money

ID = "01KB1A2B3C4D5E6F7G8H9JKMNP"
PLAN = "01BX5ZZKBKACTAV9WEVGEMMVRZ"
CALL = {"id": "c1", "name": "add", "arguments": {"a": 1}}


def draft(**fields):
    return MessageDraft(**{"role": "user", "content": "hello"} | fields)


class TestContent:
    def test_c29_only_an_assistant_that_calls_tools_may_say_nothing(self):
        assert draft(role="assistant", content=None, tool_calls=[CALL]).content is None
        for role, fields in (
            ("assistant", {}),
            ("user", {}),
            ("system", {}),
            ("tool", {"tool_call_id": "c1"}),
        ):
            with pytest.raises(errors.SessionValidationError, match="content"):
                draft(role=role, content=None, **fields)

    @pytest.mark.parametrize("blank", ["", " ", "\n\t ", "\u2003\u00a0"])
    def test_c29_blank_text_beside_tool_calls_is_stored_as_none(self, blank):
        assert draft(role="assistant", content=blank, tool_calls=[CALL]).content is None
        with pytest.raises(errors.SessionValidationError, match="whitespace"):
            draft(content=blank)

    def test_c29_the_view_names_the_called_tools_instead_of_none(self):
        nested = {"id": "c2", "type": "function", "function": {"name": "mul", "arguments": "{}"}}
        message = draft(role="assistant", content=None, tool_calls=[CALL, nested, {"id": "c3"}])
        assert message.text == "[calls add, mul, a tool]"

    @pytest.mark.parametrize("role", ["user", "system", "tool"])
    def test_tool_calls_belong_to_an_assistant(self, role):
        with pytest.raises(errors.SessionValidationError, match="tool_calls"):
            draft(role=role, tool_call_id="c", tool_calls=[CALL])

    @pytest.mark.parametrize("calls", [[], "call", [1], {"id": "c"}, 0])
    def test_tool_calls_are_a_list_of_mappings(self, calls):
        with pytest.raises(errors.SessionValidationError, match="tool_calls"):
            draft(role="assistant", tool_calls=calls)

    def test_c31_a_list_of_parts_is_kept_and_reads_as_text(self):
        parts = [{"text": "what is this?"}, {"image": "data:image/png;base64,QUJD"}]
        message = draft(content=parts)
        assert message.parts == parts
        assert message.content == message.text == "what is this? [image]"

    def test_c31_parts_may_stand_beside_a_text_of_their_own(self):
        message = draft(content="my own words", parts=["a", {"text": "b"}])
        assert (message.content, message.parts) == ("my own words", ["a", {"text": "b"}])

    @pytest.mark.parametrize("parts", [[], "text", {"text": "x"}])
    def test_parts_are_a_list_that_holds_something(self, parts):
        with pytest.raises(errors.SessionValidationError, match="parts"):
            draft(parts=parts)

    @pytest.mark.parametrize("content", [7, b"bytes", {"text": "x"}, True])
    def test_content_is_text_or_a_list(self, content):
        with pytest.raises(errors.SessionValidationError, match="content"):
            draft(content=content)

    def test_c25_lone_surrogates_are_replaced_once_where_text_enters(self):
        text = b"caf\xe9".decode("utf-8", "surrogateescape")
        once = draft(content=text, agent=f"a{text}", metadata={text: text}).content
        assert once == "caf\ufffd"
        assert draft(content=once).content == once

    def test_surrogate_pairs_become_the_character_that_they_mean(self):
        assert draft(content="\ud83c\udf89").content == "🎉"

    @pytest.mark.parametrize("role", ["User", "human", "", None, 1])
    def test_an_unknown_role_is_refused_with_those_that_are_known(self, role):
        with pytest.raises(errors.SessionValidationError, match="user, assistant, system, tool"):
            draft(role=role)

    def test_roles_are_accepted_as_text_and_kept_as_roles(self):
        assert draft(role="user").role is MessageRole.USER

    @pytest.mark.parametrize("field", ["tool_call_id", "agent"])
    @pytest.mark.parametrize("value", ["", " ", 5])
    def test_names_are_text_that_is_not_blank(self, field, value):
        with pytest.raises(errors.SessionValidationError, match=field):
            draft(**{field: value})


class TestValues:
    """One rule for everything that is stored as JSON; values/json.py has tests of its own."""

    def test_c34_values_are_converted_or_refused_the_same_way_everywhere(self):
        when = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
        given_ = {"at": when, "price": decimal.Decimal("1.10"), "pair": (1, 2)}
        kept = {"at": "2026-01-02T03:04:05+00:00", "price": "1.10", "pair": [1, 2]}
        assert draft(metadata=given_).metadata == kept
        assert draft(content="x", parts=[given_]).parts == [kept]
        assert draft(role="assistant", tool_calls=[given_]).tool_calls == [kept]
        assert Session(ID, metadata=given_).metadata == kept

    @pytest.mark.parametrize("value", [b"x", {1}, object(), float("nan"), float("inf"), len])
    def test_c38_what_cannot_be_stored_is_refused_with_its_place(self, value):
        for make in (
            lambda: draft(metadata={"items": [0, {"fn": value}]}),
            lambda: Session(ID, metadata={"items": [0, {"fn": value}]}),
            lambda: draft(role="assistant", tool_calls=[{"items": [0, {"fn": value}]}]),
        ):
            with pytest.raises(errors.InvalidValueError, match=r"items\[1\]\.fn"):
                make()

    def test_c35_numpy_scalars_become_plain_numbers_and_fractions_are_refused(self):
        kept = draft(metadata={"score": np.float64(0.5), "n": np.int64(3)}).metadata
        assert kept == {"score": 0.5, "n": 3}
        assert [type(value) for value in kept.values()] == [float, int]
        with pytest.raises(errors.InvalidValueError, match="f"):
            draft(metadata={"f": fractions.Fraction(1, 3)})

    def test_c37_keys_that_would_merge_are_refused(self):
        with pytest.raises(errors.InvalidValueError, match="key 1"):
            draft(metadata={1: "a", "1": "b"})

    def test_metadata_is_copied_not_shared(self):
        mine = {"list": [1]}
        message, session = draft(metadata=mine), Session(ID, metadata=mine)
        mine["list"].append(2)
        assert message.metadata == session.metadata == {"list": [1]}


class TestSession:
    def test_c89_ids_are_kept_in_upper_case(self):
        session = Session(ID.lower(), forked_from=ID.lower(), linked_plans=[LinkedPlan(PLAN.lower())])
        assert (session.session_id, session.forked_from, session.linked_plan_ids) == (ID, ID, [PLAN])

    @pytest.mark.parametrize("namespace", ["", "Team", "a/b", "-a", "x" * 65, None, 1])
    def test_a_namespace_has_the_form_of_an_actors_first_part(self, namespace):
        with pytest.raises(errors.SessionValidationError, match="namespace"):
            Session(ID, namespace=namespace)

    @pytest.mark.parametrize(
        "name", ["/bot", "team/", "team/sub/bot", "bot", "Team/Bot", " team/bot ", "team/bot\n", "", 7]
    )
    def test_c23_malformed_actors_are_refused_with_the_form(self, name):
        with pytest.raises(errors.SessionValidationError, match="namespace/name"):
            Session(ID, actor_name=name)

    def test_levels_are_accepted_as_text_and_unknown_ones_refused(self):
        assert Session(ID, automation_level="manual").automation_level is AutomationLevel.MANUAL
        with pytest.raises(errors.SessionValidationError, match="review_before_apply"):
            Session(ID, automation_level="auto")

    def test_times_are_aware_and_in_utc(self):
        east = dt.timezone(dt.timedelta(hours=5, minutes=30))
        session = Session(ID, created_at=dt.datetime(2026, 1, 1, 5, 30, tzinfo=east))
        assert session.created_at == dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
        assert session.created_at.tzinfo is dt.UTC
        assert session.as_export_dict()["created_at"] == "2026-01-01T00:00:00.000000+00:00"
        with pytest.raises(errors.SessionValidationError, match="created_at"):
            Session(ID, created_at=dt.datetime(2026, 1, 1))  # noqa: DTZ001

    def test_a_session_is_never_updated_before_it_was_created(self):
        later = dt.datetime(2199, 1, 1, tzinfo=dt.UTC)
        session = Session(ID, created_at=later)
        session.append_message("user", "from the past")
        assert session.updated_at == later
        with pytest.raises(errors.SessionValidationError, match="updated_at"):
            Session(ID, created_at=later, updated_at=later - dt.timedelta(microseconds=1))

    def test_tags_are_kept_once_and_in_order(self):
        assert Session(ID, tags=["b", "a", "b"]).tags == ["a", "b"]

    @pytest.mark.parametrize("tags", ["tag", [""], [" a"], ["a\n"], [1], ["x" * 101], [None], 7])
    def test_tags_are_a_list_of_short_printable_texts(self, tags):
        with pytest.raises(errors.SessionValidationError, match="tag"):
            Session(ID, tags=tags)

    def test_a_plan_keeps_what_it_does_not_tell_again(self):
        session = Session(ID)
        session.link_plan(PLAN, "draft", "open")
        session.link_plan(PLAN, state="closed")
        assert session.linked_plans == [LinkedPlan(PLAN, "draft", "closed")]

    def test_plans_given_twice_are_refused(self):
        with pytest.raises(errors.SessionValidationError, match="linked_plans"):
            Session(ID, linked_plans=[LinkedPlan(PLAN), LinkedPlan(PLAN)])

    @pytest.mark.parametrize("text", ["xyz", "", PLAN + " ", "\uff10" * 26, None, 5])
    def test_c88_a_plan_id_that_is_no_ulid_is_refused(self, text):
        with pytest.raises(errors.InvalidIdError, match="not a valid id"):
            Session(ID).link_plan(text)

    @pytest.mark.parametrize("value", [-1, "ten", 1.5, True, float("nan")])
    def test_c85_limits_that_are_no_number_or_negative_are_refused(self, value):
        session = Session(ID)
        for read in (
            lambda: session.get_messages(limit=value),
            lambda: session.get_messages(offset=value),
            lambda: session.as_cli_dict(recent=value),
        ):
            with pytest.raises(errors.InvalidValueError):
                read()

    def test_c85_limits_beyond_the_end_are_fine(self):
        session = Session(ID)
        for number in range(3):
            session.append_message("user", str(number))
        assert len(session.get_messages(limit=10**30)) == 3
        assert (
            session.get_messages(offset=3) == session.get_messages(offset=10**30) == session.get_messages(limit=0) == []
        )
        assert session.as_cli_dict(recent=0)["recent_messages"] == []
        assert len(session.as_cli_dict(recent=10**9)["recent_messages"]) == 3

    def test_what_no_document_can_hold_is_an_export_error_that_names_it(self):
        session = Session(ID)
        session.metadata["client"] = object()
        with pytest.raises(errors.SessionExportError, match=f"{ID}.*client"):
            session.as_export_dict()

    def test_messages_put_in_by_hand_are_checked_when_exported(self):
        session = Session(ID, messages=[SessionMessage(0, "user", "a")])
        session.messages.append(SessionMessage(5, "user", "b"))
        with pytest.raises(errors.SessionExportError, match="ordered by sequence"):
            session.as_export_dict()


class TestMoney:
    def test_sums_are_exact(self):
        usage = TokenUsage()
        for _ in range(1000):
            usage = usage.plus(UsageEntry(1, 1, 0.1))
        assert usage == TokenUsage(1000, 1000, 100.0)

    def test_c53_an_unknown_cost_makes_the_total_incomplete_and_is_never_zero(self):
        usage = TokenUsage().plus(UsageEntry(10, 5, None, "acme-9")).plus(UsageEntry(10, 5, 0.25))
        assert usage == TokenUsage(20, 10, 0.25, cost_complete=False)
        assert UsageEntry(10, 5, None).estimated_cost is None

    @pytest.mark.parametrize("cost", [-0.1, float("nan"), float("inf"), "0.1", True, None, 1e30, decimal.Decimal(-1)])
    def test_what_is_no_amount_is_refused(self, cost):
        with pytest.raises(errors.SessionValidationError, match="estimated_cost"):
            TokenUsage(estimated_cost=cost)

    @pytest.mark.parametrize("count", [-1, 1.0, "1", True, None, 2**63])
    def test_what_is_no_number_of_tokens_is_refused(self, count):
        with pytest.raises(errors.SessionValidationError, match="input_tokens"):
            TokenUsage(count)
        with pytest.raises(errors.SessionValidationError, match="output_tokens"):
            UsageEntry(0, count, None)

    def test_a_total_ends_at_what_both_databases_hold(self):
        most = MAX_COUNT // NANO
        total = TokenUsage(MAX_COUNT, 1, most).plus(UsageEntry(1, 2, 5))
        assert (total.input_tokens, total.output_tokens, total.estimated_cost) == (MAX_COUNT, 3, most)
        assert not total.cost_complete

    @given(st.integers(0, MAX_COUNT // 2))
    def test_nano_dollars_survive_as_text_and_as_amount(self, nano):
        assert parse_money(money_text(nano), "cost") == nano
        assert TokenUsage(0, 0, dollars(nano)).nano_dollars == nano

    @given(st.integers(0, 2**52))
    def test_an_amount_that_is_read_as_a_float_is_the_same_amount(self, nano):
        assert TokenUsage(0, 0, TokenUsage(0, 0, dollars(nano)).estimated_cost).nano_dollars == nano

    @pytest.mark.parametrize(
        ("cost", "text"), [(0, "0"), (6.0, "6"), (0.00001, "0.00001"), (1e-9, "0.000000001"), (0.0000000004, "0")]
    )
    def test_money_is_plain_decimal_text(self, cost, text):
        assert money_text(TokenUsage(0, 0, cost).nano_dollars) == text

    @pytest.mark.parametrize("text", ["", "1.", ".5", "-1", "1e3", "1.0000000001", " 1", "\uff11", 1, None])
    def test_other_forms_of_money_are_refused(self, text):
        with pytest.raises(errors.SessionValidationError, match="cost"):
            parse_money(text, "cost")
