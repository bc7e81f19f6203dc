"""How far the ranks' clocks disagree, by collectives that must end together."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kopeck.trace.collectives import SYNCHRONISING
from kopeck.trace.matching import Match

MOST_SPREAD_SECONDS = 1e-3
"""More is no clock: what does not end together is not the same collective.

Two H200 of one host differ by 48 µs at most, eight V100 by 7 µs."""
MOST_DRIFT = 500e-6
"""Seconds in a second by which honest clocks part: quartz strays by 100e-6, and ntpd steers by this
at most. Runs of different pace part faster."""


@dataclass(frozen=True)
class Clock:
    """A rank's clock against that of the reference: the lowest rank that agrees with most."""

    offset_seconds: float
    """The median difference of the ends without the drift: positive where this clock is ahead."""
    spread_seconds: float
    """Half the distance of the 5th and the 95th percentile: the error of the offset."""
    drift: float = 0.0
    """Seconds by which it gains on the reference in a second."""
    middle_ns: int = 0
    """By this clock the moment of the offset, amid the collectives."""

    def ahead_ns(self, time_ns: int) -> int:
        """How far it is ahead at a time of its own."""
        drifted_ns = self.drift * (time_ns - self.middle_ns)
        return round(self.offset_seconds * 1e9 + drifted_ns)

    @property
    def agrees(self) -> bool:
        """Whether the collectives of both end together."""
        return self.spread_seconds <= MOST_SPREAD_SECONDS


class Clocks(NamedTuple):
    """What collectives tell of the ranks' clocks."""

    by_rank: dict[int, Clock]
    """Of the ranks that share a collective with the reference."""
    strangers: dict[int, Clock]
    """Of those whose collectives do not end with the others': of another run."""


_Ends = Mapping[int, Mapping[int, int]]
"""By rank and number of the collective, when it ended by the rank's clock."""


def clocks_of(matches: Iterable[Match]) -> Clocks:
    """Against the lowest rank that agrees with most of those that it shares collectives with.

    Ranks that share none with it are held against one of their own groups, to find strangers.
    """
    ends: dict[int, dict[int, int]] = defaultdict(dict)
    for number, match in enumerate(match for match in matches if match.kind in SYNCHRONISING):
        for rank, each in match.collectives.items():
            ends[rank][number] = each.start_ns + each.duration_ns
    first: dict[int, Clock] = {}
    seen: set[int] = set()
    strangers: dict[int, Clock] = {}
    while unseen := ends.keys() - seen:
        clocks = _against_most(ends, unseen, strangers.keys())
        first = first or clocks
        strangers |= {
            rank: clock for rank, clock in clocks.items() if rank in unseen and not clock.agrees
        }
        seen |= clocks.keys()
    return Clocks(first, dict(sorted(strangers.items())))


def _against_most(ends: _Ends, unseen: Iterable[int], strangers: Iterable[int]) -> dict[int, Clock]:
    """Clocks of some of the unseen ranks, against the lowest one that a majority agrees with.

    Where none has a majority, against the one that most agree with.
    """
    best: dict[int, Clock] = {}
    most = 0
    wanted = set(unseen)
    for reference in sorted(ends.keys() - set(strangers)):
        clocks = _against(ends, reference)
        if not wanted & clocks.keys():
            continue
        agreeing = sum(clock.agrees for clock in clocks.values())
        if agreeing * 2 > len(clocks):
            return clocks
        if agreeing > most:
            best, most = clocks, agreeing
    return best


def _against(ends: _Ends, reference: int) -> dict[int, Clock]:
    """Of each rank that shares a collective with the reference, itself among them."""
    base = ends[reference]
    clocks = {}
    for rank, own in sorted(ends.items()):
        if shared := own.keys() & base.keys():
            pairs = sorted((own[number], own[number] - base[number]) for number in shared)
            clocks[rank] = _clock(pairs)
    return clocks


def _clock(ends_ns: Sequence[tuple[int, int]]) -> Clock:
    """Of ends by a rank's clock in order of time, and by how much later they are than by the other.

    A drift that leaves the ends no closer together is noise.
    """
    begin_ns, nearby_ns = ends_ns[0]
    middle_ns = (begin_ns + ends_ns[-1][0]) // 2
    times = np.array([time - middle_ns for time, _ in ends_ns], dtype=np.float64)
    ahead = np.array([each - nearby_ns for _, each in ends_ns], dtype=np.float64)
    fits = []
    for drift in (0.0, _drift(times, ahead)):
        low, median, high = np.percentile(ahead - drift * times, (5, 50, 95))
        offset_seconds = float(median + nearby_ns) / 1e9
        fits.append(Clock(offset_seconds, float(high - low) / 2e9, drift, middle_ns))
    return min(fits, key=lambda clock: clock.spread_seconds)


def _drift(times: npt.NDArray[np.float64], ahead: npt.NDArray[np.float64]) -> float:
    """The median of the drifts between each end and the one that is half of all further."""
    half = times.size // 2
    passed = times[times.size - half :] - times[:half]
    gained = ahead[times.size - half :] - ahead[:half]
    if not (lasting := passed > 0).any():
        return 0.0
    slope = float(np.median(gained[lasting] / passed[lasting]))
    return min(max(slope, -MOST_DRIFT), MOST_DRIFT)


def without_strangers(matches: Iterable[Match], strangers: Iterable[int]) -> list[Match]:
    """The matches of ranks that end together."""
    left_out = set(strangers)
    return [match for match in matches if not left_out & match.collectives.keys()]
