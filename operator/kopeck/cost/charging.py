"""From pods seen to ledger segments: when a pod is charged, and until when."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from kopeck.cost.ledger import Ledger, Segment


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


@dataclass(frozen=True)
class PodPrice:
    """What a pod pays: its share of a node and the node's price; None where unknown."""

    node_share: Decimal | None
    dollars_per_hour: Decimal | None
    price_book: str | None


UNKNOWN_PRICE = PodPrice(node_share=None, dollars_per_hour=None, price_book=None)


def observe(
    ledger: Ledger,
    pods: Iterable[HeldPod],
    price_of: Callable[[HeldPod], PodPrice],
    last_seen: datetime | None,
    now: datetime,
) -> Ledger:
    """The ledger after a look at the job's pods; the same object if nothing changed.

    A pod is charged from scheduled to the latest end of its containers, by the objects' own times.
    One that vanished without an end is closed when it was `last_seen`, marked estimated, and the
    time until now is uncertain.
    """
    seen = {pod.uid: pod for pod in pods}
    changed = [
        segment
        for pod in seen.values()
        if (segment := _segment(ledger.segments.get(pod.uid), pod, price_of, now))
        != ledger.segments.get(pod.uid)
    ]
    vanished = [each for each in ledger.open_segments if each.pod_uid not in seen]
    changed += [_closed_unseen(each, last_seen, now) for each in vanished]
    return ledger.with_segments(changed) if changed else ledger


def _segment(
    known: Segment | None, pod: HeldPod, price_of: Callable[[HeldPod], PodPrice], now: datetime
) -> Segment:
    segment = known or Segment(
        pod_uid=pod.uid, pod=pod.name, attempt=pod.attempt, node=pod.node, start=pod.scheduled_at
    )
    if segment.hourly_rate is None:
        price = price_of(pod)
        segment = segment.model_copy(
            update={
                "node_share": price.node_share,
                "dollars_per_hour": price.dollars_per_hour,
                "price_book": price.price_book,
            }
        )
    if segment.end is not None and not segment.estimated_end:
        return segment
    return segment.model_copy(update=_end(segment, pod, now))


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
