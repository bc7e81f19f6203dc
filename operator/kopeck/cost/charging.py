"""From pods seen to ledger segments: when a pod is charged, and until when."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from kopeck.cost.ledger import Ledger, Segment
from kopeck.pricing.price import NodeKey, Price


@dataclass(frozen=True)
class HeldPod:
    """A pod that a node holds or held."""

    uid: str
    name: str
    attempt: int
    node: str
    scheduled_at: datetime
    ended_at: datetime | None
    """Latest end of its containers; None while it lives, or if it went without saying."""
    is_gone: bool
    """No object, or a terminal one: it holds nothing any more."""
    node_share: Decimal | None
    price_key: NodeKey | None
    """None, as the share, where its node cannot be read."""


def observe(
    ledger: Ledger,
    pods: Iterable[HeldPod],
    price_of: Callable[[NodeKey], Price | None],
    last_seen: datetime | None,
    now: datetime,
) -> Ledger:
    """The ledger after a look at the job's pods; the same object if nothing changed.

    A pod is charged from scheduled to the latest end of its containers, by the objects' own times.
    One that vanished without an end is closed when it was `last_seen`, marked estimated, and the
    time until now is uncertain. What has no price yet gets it once there is one, seen or not.
    """
    seen = {pod.uid: pod for pod in pods}
    vanished = [each for each in ledger.open_segments if each.pod_uid not in seen]
    segments = (
        ledger.segments
        | {each.pod_uid: _closed_unseen(each, last_seen, now) for each in vanished}
        | {uid: _segment(ledger.segments.get(uid), pod, now) for uid, pod in seen.items()}
    )
    changed = [
        priced
        for uid, segment in segments.items()
        if (priced := _priced(segment, price_of)) != ledger.segments.get(uid)
    ]
    return ledger.with_segments(changed) if changed else ledger


def _segment(known: Segment | None, pod: HeldPod, now: datetime) -> Segment:
    segment = known or Segment(
        pod_uid=pod.uid, pod=pod.name, attempt=pod.attempt, node=pod.node, start=pod.scheduled_at
    )
    if segment.hourly_rate is None:
        segment = segment.model_copy(update=_found_out(segment, pod))
    if segment.end is not None and not segment.estimated_end:
        return segment
    return segment.model_copy(update=_end(segment, pod, now))


def _found_out(segment: Segment, pod: HeldPod) -> dict[str, Any]:
    """What the price depends on, as far as it is known by now: a node that is gone says nothing."""
    share = {"node_share": pod.node_share or segment.node_share}
    if segment.dollars_per_hour is not None:
        return share
    return share | {"price_key": pod.price_key or segment.price_key}


def _priced(segment: Segment, price_of: Callable[[NodeKey], Price | None]) -> Segment:
    """A price that was found stays, whatever a later book says."""
    if segment.dollars_per_hour is not None or segment.price_key is None:
        return segment
    price = price_of(segment.price_key)
    if price is None:
        return segment
    found = {"dollars_per_hour": price.dollars_per_hour, "price_book": price.book}
    return segment.model_copy(update=found)


def _end(segment: Segment, pod: HeldPod, now: datetime) -> dict[str, Any]:
    """What a look at a pod says of its end: a pod that lives has none, whatever was estimated."""
    if not pod.is_gone:
        return {"end": None, "estimated_end": False, "uncertain_until": None}
    if pod.ended_at is None:
        return {"end": segment.end or max(now, segment.start), "estimated_end": True}
    end = min(max(pod.ended_at, segment.start), now)
    return {"end": end, "estimated_end": False, "uncertain_until": None}


def _closed_unseen(segment: Segment, last_seen: datetime | None, now: datetime) -> Segment:
    end = max(segment.start, min(last_seen or segment.start, now))
    return segment.model_copy(
        update={"end": end, "estimated_end": True, "uncertain_until": max(now, end)}
    )
