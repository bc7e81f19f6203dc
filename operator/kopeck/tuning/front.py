"""The choice among measured points: the Pareto front, and the best of it."""

from collections.abc import Sequence
from decimal import Decimal

from kopeck.tuning.outcome import Measured


def pareto_front(measured: Sequence[Measured]) -> list[Measured]:
    """Those that no other point betters in step time, memory and dollars per sample at once."""
    return [one for one in measured if not any(dominates(other, one) for other in measured)]


def dominates(one: Measured, other: Measured) -> bool:
    """Whether `one` takes no more of anything than `other`, and less of something."""
    pairs: list[tuple[float | Decimal, float | Decimal]] = [
        (one.step_seconds, other.step_seconds),
        (one.peak_bytes, other.peak_bytes),
    ]
    if one.dollars_per_sample is not None and other.dollars_per_sample is not None:
        pairs.append((one.dollars_per_sample, other.dollars_per_sample))
    return all(mine <= its for mine, its in pairs) and any(mine < its for mine, its in pairs)


def best_of(measured: Sequence[Measured]) -> Measured | None:
    """That of the fewest dollars per sample, of the shortest step where they are unknown.

    Of equal ones the faster, then that of less memory; None without a point.
    """
    return min(measured, key=_rank, default=None)


def _rank(one: Measured) -> tuple[Decimal | float, ...]:
    """All points of a tuning have dollars, or none has."""
    dollars = () if one.dollars_per_sample is None else (one.dollars_per_sample,)
    return (*dollars, one.step_seconds, one.peak_bytes)
