"""Ranks against the best of them."""

from collections.abc import Sequence
from dataclasses import dataclass

from kopeck.trace.report import RankReport, own_ns


@dataclass(frozen=True)
class Relative:
    """A rank's times by the shortest of any rank: 1 is the best, 1.2 takes a fifth longer.

    None where the rank has no such time, or the best has spent none.
    """

    own: float | None
    """Its time without waiting for late ranks."""
    compute: float | None
    exposed: float | None
    idle: float | None


def relatives(ranks: Sequence[RankReport]) -> list[Relative]:
    """In the order of the ranks."""
    parts = [each.summary.breakdown for each in ranks]
    columns = (
        [own_ns(each) for each in ranks],
        [part.compute_ns if part else None for part in parts],
        [part.exposed_ns if part else None for part in parts],
        [part.idle_ns if part else None for part in parts],
    )
    return [Relative(*row) for row in zip(*map(_by_best, columns), strict=True)]


def _by_best(times_ns: Sequence[int | None]) -> list[float | None]:
    known = [each for each in times_ns if each is not None]
    best = min(known, default=0)
    return [each / best if best and each is not None else None for each in times_ns]
