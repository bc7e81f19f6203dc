"""How far the ranks' clocks disagree, by collectives that must end together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kopeck.trace.collectives import SYNCHRONISING
from kopeck.trace.matching import Match

MOST_SPREAD_SECONDS = 1e-3
"""More is no clock: what does not end together is not the same collective.

Two H200 of one host differ by 48 µs at most, eight V100 by 7 µs."""


@dataclass(frozen=True)
class Clock:
    """A rank's clock against that of the lowest rank."""

    offset_seconds: float
    """The median difference of the ends: positive where this clock is ahead."""
    spread_seconds: float
    """Half the distance of the 5th and the 95th percentile: the error of the offset."""


def clocks_of(matches: Iterable[Match]) -> dict[int, Clock]:
    """By rank, of those that share a collective with the lowest one."""
    ends: dict[int, list[int]] = {}
    lowest: int | None = None
    synchronising = [match for match in matches if match.kind in SYNCHRONISING]
    for match in synchronising:
        lowest = min(match.collectives) if lowest is None else min(lowest, *match.collectives)
    for match in synchronising:
        if lowest not in match.collectives:
            continue
        base = match.collectives[lowest]
        for rank, each in match.collectives.items():
            difference = each.start_ns + each.duration_ns - base.start_ns - base.duration_ns
            ends.setdefault(rank, []).append(difference)
    return {rank: _clock(differences) for rank, differences in ends.items()}


def _clock(differences_ns: Sequence[int]) -> Clock:
    low, median, high = np.percentile(np.array(differences_ns, dtype=np.int64), (5, 50, 95))
    return Clock(float(median) / 1e9, float(high - low) / 2e9)


def without_strangers(
    matches: Sequence[Match], clocks: dict[int, Clock]
) -> tuple[list[Match], list[int]]:
    """The matches of ranks that end together, and the ranks that do not: of another run."""
    strangers = [
        rank for rank, clock in clocks.items() if clock.spread_seconds > MOST_SPREAD_SECONDS
    ]
    kept = [match for match in matches if not set(strangers) & set(match.collectives)]
    return kept, sorted(strangers)
