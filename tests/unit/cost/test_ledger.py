"""What segments cost."""

from datetime import datetime, timedelta
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from kopeck.cost.ledger import Ledger, Segment
from tests.builders import T0, a_ledger, a_segment, after

moments = st.timedeltas(timedelta(days=-3), timedelta(days=3)).map(lambda each: T0 + each)
shares = st.decimals("0.001", 1, places=3)
prices = st.decimals("0.01", 200, places=2)


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
