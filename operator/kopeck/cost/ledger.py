"""The ledger of one job: which pods it held, from when to when, at what price.

What was spent is a function of segments and time, never a running sum: replayed events, restarts
and duplicates charge nothing twice.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal

from pydantic import AwareDatetime, BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from kopeck.pricing.price import NodeKey

_MICROSECOND = timedelta(microseconds=1)
_MICROSECONDS_PER_HOUR = Decimal(3_600_000_000)


class Segment(BaseModel):
    """One pod on one node at one price: held from `start` to `end`, or still held."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, frozen=True)

    pod_uid: str
    pod: str
    attempt: int
    node: str
    start: AwareDatetime
    end: AwareDatetime | None = None
    estimated_end: bool = False
    uncertain_until: AwareDatetime | None = None
    """For an estimated end: the latest moment at which the pod may have lived."""
    node_share: Decimal | None = None
    dollars_per_hour: Decimal | None = None
    """Of the whole node; None while unknown."""
    price_book: str | None = None
    price_key: NodeKey | None = None
    """What the price was or will be looked up by; None where the node was never read, and in
    ledgers of versions that did not keep it."""

    @property
    def hourly_rate(self) -> Decimal | None:
        """Dollars an hour of this pod; None where price or share is unknown."""
        if self.dollars_per_hour is None or self.node_share is None:
            return None
        return self.dollars_per_hour * self.node_share

    def cost(self, now: datetime) -> Decimal | None:
        """Dollars from start to end, or to `now` while held; None where the price is unknown."""
        rate = self.hourly_rate
        if rate is None:
            return None
        return rate * _microseconds(self.start, self.end or now) / _MICROSECONDS_PER_HOUR

    def uncertain_cost(self) -> Decimal:
        """Dollars between an estimated end and the latest possible one."""
        rate = self.hourly_rate
        if rate is None or self.end is None or self.uncertain_until is None:
            return Decimal(0)
        return rate * _microseconds(self.end, self.uncertain_until) / _MICROSECONDS_PER_HOUR


class Ledger(BaseModel):
    """All segments of one job, by pod. Immutable: every change is a new ledger."""

    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, frozen=True)

    segments: dict[str, Segment] = {}

    def with_segments(self, changed: Iterable[Segment]) -> "Ledger":
        return Ledger(segments=self.segments | {each.pod_uid: each for each in changed})

    @property
    def open_segments(self) -> list[Segment]:
        return [each for each in self.segments.values() if each.end is None]

    @property
    def has_unknown_price(self) -> bool:
        return any(each.hourly_rate is None for each in self.segments.values())

    def spent(self, now: datetime) -> Decimal | None:
        """Dollars until `now`; None before the first segment and while a price is unknown."""
        if not self.segments or self.has_unknown_price:
            return None
        return self.spent_at_least(now)

    def spent_at_least(self, now: datetime) -> Decimal:
        """Dollars of the segments whose price is known."""
        costs = (each.cost(now) for each in self.segments.values())
        return sum((cost for cost in costs if cost is not None), Decimal(0))

    def uncertain(self) -> Decimal:
        """Dollars between estimated ends and the latest possible ones; not in `spent`."""
        return sum((each.uncertain_cost() for each in self.segments.values()), Decimal(0))

    def hourly_rate(self) -> Decimal | None:
        """Dollars an hour of what is held now; None if nothing is, or a price is unknown."""
        rates = [each.hourly_rate for each in self.open_segments]
        known = [rate for rate in rates if rate is not None]
        return sum(known, Decimal(0)) if rates and len(known) == len(rates) else None


def _microseconds(start: datetime, end: datetime) -> Decimal:
    """Whole microseconds between; a clock that steps back refunds nothing."""
    return Decimal(max(end - start, timedelta(0)) // _MICROSECOND)
