"""What segments cost."""

import json
from datetime import datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from kopeck.cost.ledger import Ledger, Segment
from kopeck.pricing.price import NodeKey
from tests.builders import T0, a_ledger, a_segment, after

moments = st.timedeltas(timedelta(days=-3), timedelta(days=3)).map(lambda each: T0 + each)
shares = st.decimals("0.001", 1, places=3)
prices = st.decimals("0.01", 200, places=2)
price_keys = st.builds(
    NodeKey,
    instance_type=st.none() | st.just("p5.48xlarge"),
    region=st.none() | st.just("us-east-1"),
    zone=st.none() | st.just("us-east-1a"),
    capacity_type=st.sampled_from(["on-demand", "spot", "unknown"]),
)


@st.composite
def segments(draw: st.DrawFn) -> Segment:
    start, end = draw(moments), draw(st.none() | moments)
    return a_segment(
        draw(st.uuids().map(str)),
        start=start,
        end=end,
        uncertain_until=draw(st.none() | moments),
        node_share=draw(st.none() | shares),
        dollars_per_hour=draw(st.none() | prices),
        price_key=draw(st.none() | price_keys),
    )


ledgers = st.lists(segments(), max_size=6).map(lambda each: a_ledger(*each))


def test_half_a_node_for_half_an_hour_costs_a_quarter_of_its_hourly_price() -> None:
    half = a_segment(node_share=Decimal("0.5"), dollars_per_hour=Decimal("98.32"))
    assert half.cost(after(minutes=30)) == Decimal("24.58")


def test_a_clock_that_steps_back_refunds_nothing() -> None:
    assert a_segment().cost(after(hours=-1)) == 0


def test_an_end_before_the_start_costs_nothing() -> None:
    assert a_segment(end=after(hours=-1)).cost(after(hours=1)) == 0


def test_what_has_ended_costs_the_same_for_ever() -> None:
    held_for_an_hour = a_segment(end=after(hours=1))
    assert held_for_an_hour.cost(after(days=300)) == 1


def test_an_unknown_price_is_unknown_and_never_zero() -> None:
    assert a_segment(dollars_per_hour=None).cost(after(hours=1)) is None
    assert a_segment(node_share=None).cost(after(hours=1)) is None
    assert a_ledger(a_segment(dollars_per_hour=None)).spent(after(hours=1)) is None


def test_a_job_that_held_nothing_yet_has_no_spend_and_no_rate() -> None:
    assert Ledger().spent(T0) is None
    assert Ledger().hourly_rate() is None


def test_the_priced_part_is_known_beside_an_unknown_price() -> None:
    ledger = a_ledger(a_segment("priced"), a_segment("unpriced", dollars_per_hour=None))
    assert ledger.spent(after(hours=2)) is None
    assert ledger.spent_at_least(after(hours=2)) == 2


def test_the_hourly_rate_is_of_what_is_held_now() -> None:
    ledger = a_ledger(
        a_segment("first", node_share=Decimal("0.25")),
        a_segment("second", dollars_per_hour=Decimal(3)),
        a_segment("ended", end=after(hours=1)),
    )
    assert ledger.hourly_rate() == Decimal("3.25")


def test_the_hourly_rate_is_unknown_while_a_held_pod_has_no_price() -> None:
    ledger = a_ledger(a_segment("priced"), a_segment("unpriced", node_share=None))
    assert ledger.hourly_rate() is None


def test_an_ended_pod_without_price_does_not_hide_the_present_rate() -> None:
    ended = a_segment("ended", end=after(hours=1), dollars_per_hour=None)
    assert a_ledger(a_segment("held"), ended).hourly_rate() == 1


def test_uncertain_dollars_stand_beside_those_spent() -> None:
    unseen = a_segment(end=after(hours=1), estimated_end=True, uncertain_until=after(hours=3))
    ledger = a_ledger(unseen)
    assert ledger.spent(after(hours=9)) == 1
    assert ledger.uncertain() == 2


def test_a_segment_that_is_told_twice_is_charged_once() -> None:
    once, twice = a_ledger(a_segment()), a_ledger(a_segment(), a_segment())
    assert twice.spent(after(hours=1)) == once.spent(after(hours=1)) == 1


@given(ledgers, moments)
def test_no_cost_is_negative(ledger: Ledger, now: datetime) -> None:
    assert ledger.spent_at_least(now) >= 0
    assert ledger.uncertain() >= 0


@given(ledgers, moments, moments)
def test_what_is_spent_never_falls_as_time_goes_on(
    ledger: Ledger, one: datetime, other: datetime
) -> None:
    earlier, later = sorted((one, other))
    assert ledger.spent_at_least(earlier) <= ledger.spent_at_least(later)


@given(ledgers, moments)
def test_the_whole_is_the_sum_of_its_segments(ledger: Ledger, now: datetime) -> None:
    each = [a_ledger(segment).spent_at_least(now) for segment in ledger.segments.values()]
    assert ledger.spent_at_least(now) == sum(each, Decimal(0))


@given(ledgers, moments)
def test_a_ledger_that_was_written_down_and_read_again_is_the_same_to_the_last_digit(
    ledger: Ledger, now: datetime
) -> None:
    read = Ledger.model_validate_json(ledger.model_dump_json(by_alias=True, exclude_none=True))
    assert read == ledger
    assert read.spent_at_least(now) == ledger.spent_at_least(now)


def test_a_ledger_that_was_written_before_price_keys_were_kept_is_read() -> None:
    text = """{"segments": {"pod": {
        "podUid": "pod", "pod": "job-abcde-a0-w0", "attempt": 0, "node": "node-1",
        "start": "2026-01-01T00:00:00Z", "end": "2026-01-01T02:00:00Z", "estimatedEnd": false,
        "nodeShare": "0.5", "dollarsPerHour": "98.32", "priceBook": "list"
    }}}"""
    ledger = Ledger.model_validate_json(text)
    assert ledger.spent(after(days=1)) == Decimal("98.32")
    assert ledger.segments["pod"].price_key is None


def test_what_a_price_is_looked_up_by_is_written_as_in_a_price_book() -> None:
    written = json.loads(a_ledger(a_segment()).model_dump_json(by_alias=True, exclude_none=True))
    assert written["segments"]["pod"]["priceKey"] == {
        "instanceType": "p5.48xlarge",
        "region": "us-east-1",
        "zone": "us-east-1a",
        "capacityType": "spot",
    }
