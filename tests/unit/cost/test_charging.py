"""From when to when a pod is charged, whatever is seen of it and in which order."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopeck.cost.charging import HeldPod, observe
from kopeck.cost.ledger import Ledger
from kopeck.pricing.price import NodeKey, Price
from tests.builders import T0, a_held_pod, after

DOLLAR_AN_HOUR = Price(Decimal(1), "book")
A_DAY_LATER = after(days=1)


def paying(price: Price | None) -> Callable[[NodeKey], Price | None]:
    return lambda _: price


def look(
    ledger: Ledger,
    *pods: HeldPod,
    now: datetime,
    price: Price | None = DOLLAR_AN_HOUR,
    last_seen: datetime | None = None,
) -> Ledger:
    return observe(ledger, pods, paying(price), last_seen, now)


def seen(*pods: HeldPod, now: datetime, price: Price | None = DOLLAR_AN_HOUR) -> Ledger:
    return look(Ledger(), *pods, now=now, price=price)


def test_a_pod_that_lives_is_charged_from_its_scheduling() -> None:
    ledger = seen(a_held_pod(scheduled_at=T0), now=after(minutes=10))
    assert ledger.spent(after(hours=2)) == 2


def test_a_pod_that_ended_is_charged_by_its_own_times_however_late_it_is_seen() -> None:
    ended = a_held_pod(ended_at=after(hours=1), is_gone=True)
    ledger = seen(ended, now=A_DAY_LATER)
    assert ledger.spent(A_DAY_LATER) == 1
    assert ledger.uncertain() == 0


def test_a_second_look_at_the_same_pods_changes_nothing() -> None:
    pod = a_held_pod()
    once = seen(pod, now=after(minutes=1))
    assert look(once, pod, now=after(minutes=2)) is once


def test_a_pod_that_vanished_is_closed_when_it_was_last_seen_and_the_rest_is_uncertain() -> None:
    ledger = seen(a_held_pod(), now=after(minutes=1))
    closed = look(ledger, now=after(hours=3), last_seen=after(hours=2))
    assert closed.spent(A_DAY_LATER) == 2
    assert closed.uncertain() == 1
    assert closed.segments["pod"].estimated_end


def test_a_pod_that_vanished_unseen_is_uncertain_from_its_scheduling() -> None:
    closed = look(seen(a_held_pod(), now=T0), now=after(hours=3), last_seen=None)
    assert closed.spent(A_DAY_LATER) == 0
    assert closed.uncertain() == 3


def test_a_pod_is_never_closed_later_than_now() -> None:
    closed = look(seen(a_held_pod(), now=T0), now=after(hours=1), last_seen=after(hours=9))
    assert closed.spent(A_DAY_LATER) == 1


def test_later_evidence_replaces_an_estimated_end() -> None:
    vanished = look(seen(a_held_pod(), now=T0), now=after(hours=3), last_seen=after(hours=1))
    last_word = a_held_pod(ended_at=after(hours=2), is_gone=True)
    told = look(vanished, last_word, now=after(hours=4))
    assert told.spent(A_DAY_LATER) == 2
    assert told.uncertain() == 0
    assert not told.segments["pod"].estimated_end


def test_a_pod_that_is_seen_alive_after_it_vanished_is_charged_on() -> None:
    vanished = look(seen(a_held_pod(), now=T0), now=after(hours=3), last_seen=after(hours=1))
    alive = look(vanished, a_held_pod(), now=after(hours=4))
    assert alive.spent(after(hours=5)) == 5
    assert alive.uncertain() == 0
    assert alive.hourly_rate() == 1


def test_a_late_and_old_look_does_not_reopen_what_ended_by_its_own_times() -> None:
    ended = seen(a_held_pod(ended_at=after(hours=1), is_gone=True), now=after(hours=2))
    assert look(ended, a_held_pod(), now=after(hours=3)) is ended


def test_a_pod_that_went_without_saying_when_is_closed_now_by_our_own_clock() -> None:
    evicted = a_held_pod(is_gone=True)
    closed = look(seen(a_held_pod(), now=T0), evicted, now=after(hours=2))
    assert closed.spent(A_DAY_LATER) == 2
    assert closed.segments["pod"].estimated_end
    assert look(closed, evicted, now=after(hours=5)) is closed


@pytest.mark.parametrize(
    ("ended_at", "hours"), [(after(hours=-1), 0), (after(hours=1), 1), (after(hours=9), 2)]
)
def test_an_end_is_clipped_to_between_start_and_now(ended_at: datetime, hours: int) -> None:
    ledger = seen(a_held_pod(ended_at=ended_at, is_gone=True), now=after(hours=2))
    assert ledger.spent(A_DAY_LATER) == hours


def test_a_price_that_is_known_late_prices_the_whole() -> None:
    unpriced = seen(a_held_pod(), now=T0, price=None)
    assert unpriced.spent(after(hours=1)) is None
    priced = look(unpriced, a_held_pod(), now=after(hours=1))
    assert priced.spent(after(hours=3)) == 3


def test_a_price_once_known_is_kept_when_it_is_unknown_later() -> None:
    priced = seen(a_held_pod(), now=T0)
    ended = a_held_pod(ended_at=after(hours=1), is_gone=True)
    closed = look(priced, ended, now=after(hours=1), price=None)
    assert closed.spent(A_DAY_LATER) == 1


def test_a_price_once_known_stays_whatever_a_later_book_says() -> None:
    priced = seen(a_held_pod(), now=T0)
    assert look(priced, a_held_pod(), now=after(hours=1), price=Price(Decimal(9), "new")) is priced


def test_a_price_that_is_known_late_prices_pods_that_are_gone_too() -> None:
    first = a_held_pod("first", node_share=Decimal("0.5"))
    unpriced = seen(first, now=T0, price=None)
    ended = replace(first, ended_at=after(hours=1), is_gone=True, node_share=None, price_key=None)
    gone = look(unpriced, ended, now=after(hours=1), price=None)
    second = a_held_pod("second", scheduled_at=after(hours=1))
    assert look(gone, second, now=after(hours=2)).spent(after(hours=2)) == Decimal("1.5")


def test_a_price_that_is_known_late_prices_a_pod_that_vanished() -> None:
    unpriced = seen(a_held_pod(), now=T0, price=None)
    closed = look(unpriced, now=after(hours=3), last_seen=after(hours=2), price=None)
    assert (closed.spent(A_DAY_LATER), closed.spent_at_least(A_DAY_LATER)) == (None, 0)
    priced = look(closed, now=A_DAY_LATER)
    assert (priced.spent(A_DAY_LATER), priced.uncertain()) == (2, 1)
    assert look(priced, now=A_DAY_LATER) is priced


def test_a_label_that_comes_late_is_looked_up_by_and_one_that_is_gone_still_is() -> None:
    unlabelled, labelled = NodeKey(capacity_type="on-demand"), NodeKey("m5", capacity_type="spot")
    ledger = seen(a_held_pod(price_key=unlabelled), now=T0, price=None)
    ledger = look(ledger, a_held_pod(price_key=labelled), now=T0, price=None)
    ledger = look(ledger, a_held_pod(price_key=None), now=T0, price=None)
    assert ledger.segments["pod"].price_key == labelled


def test_a_share_that_is_known_late_is_of_the_whole_time_and_moves_no_price() -> None:
    ledger = seen(a_held_pod(node_share=None), now=T0)
    assert ledger.spent(after(hours=1)) is None
    other = a_held_pod(price_key=NodeKey("other", capacity_type="spot"))
    ledger = look(ledger, other, now=after(hours=1), price=Price(Decimal(9), "new"))
    assert ledger.spent(after(hours=2)) == 2
    assert ledger.segments["pod"].price_key == a_held_pod().price_key


def test_a_pod_whose_node_was_never_read_stays_unpriced() -> None:
    unread = a_held_pod(price_key=None, ended_at=after(hours=1), is_gone=True)
    ledger = seen(unread, now=after(hours=1))
    assert look(ledger, unread, now=after(hours=2)) is ledger
    assert ledger.spent(after(hours=2)) is None


def test_every_pod_pays_its_own_price() -> None:
    prices = {"cheap": Price(Decimal(1), "book"), "dear": Price(Decimal("98.32"), "book")}
    shares = {"cheap": Decimal(1), "dear": Decimal("0.5")}
    pods = [
        a_held_pod(each, node_share=shares[each], price_key=NodeKey(each, capacity_type="spot"))
        for each in prices
    ]
    ledger = observe(Ledger(), pods, lambda key: prices[key.instance_type or ""], None, T0)
    assert ledger.hourly_rate() == Decimal("50.16")


@st.composite
def pasts(draw: st.DrawFn) -> list[HeldPod]:
    """Pods as they were in truth, all of them gone by now."""
    hours = st.integers(0, 100).map(lambda each: timedelta(minutes=each))
    pods = []
    for number in range(draw(st.integers(1, 4))):
        start = T0 + draw(hours)
        end = start + draw(hours)
        pods.append(a_held_pod(f"pod-{number}", scheduled_at=start, ended_at=end, is_gone=True))
    return pods


@st.composite
def looks(draw: st.DrawFn, pods: Sequence[HeldPod]) -> list[list[HeldPod]]:
    """Looks at pods in any order: some missing, some twice, some still alive or unpriced."""
    alive = [replace(pod, ended_at=None, is_gone=False) for pod in pods]
    silent = [replace(pod, ended_at=None) for pod in pods]
    a_look = st.lists(st.sampled_from([*pods, *alive, *silent]), max_size=6)
    return draw(st.lists(a_look, max_size=6))


@given(pasts(), st.data())
def test_whatever_was_seen_before_the_last_word_on_each_pod_decides_what_is_spent(
    pods: list[HeldPod], data: st.DataObject
) -> None:
    ledger = Ledger()
    for number, seen_pods in enumerate(data.draw(looks(pods))):
        price = data.draw(st.sampled_from([DOLLAR_AN_HOUR, None]))
        now = after(days=1, seconds=number)
        ledger = look(ledger, *seen_pods, now=now, price=price, last_seen=now)
    ledger = look(ledger, *pods, now=after(days=2))
    held = sum((pod.ended_at - pod.scheduled_at for pod in pods if pod.ended_at), timedelta())
    spent = ledger.spent(after(days=3))
    assert spent is not None
    assert abs(spent - Decimal(held // timedelta(seconds=1)) / 3600) < Decimal("1e-20")
    assert ledger.uncertain() == 0


@given(pasts(), st.data())
def test_the_order_of_pods_in_a_look_does_not_matter(
    pods: list[HeldPod], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(pods))
    assert seen(*shuffled, now=A_DAY_LATER) == seen(*pods, now=A_DAY_LATER)


@given(pasts(), st.data())
def test_the_same_looks_again_charge_nothing_twice(
    pods: list[HeldPod], data: st.DataObject
) -> None:
    ledger = Ledger()
    for seen_pods in data.draw(looks(pods)):
        ledger = look(ledger, *seen_pods, now=A_DAY_LATER, last_seen=A_DAY_LATER)
        assert look(ledger, *seen_pods, now=A_DAY_LATER, last_seen=A_DAY_LATER) is ledger
