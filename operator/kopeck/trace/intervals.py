"""Sets of time as sorted, disjoint half-open intervals; exact, in whole nanoseconds."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Nanoseconds = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Intervals:
    """Disjoint [start, end) in order of time, none of them empty."""

    starts_ns: Nanoseconds
    ends_ns: Nanoseconds

    @property
    def total_ns(self) -> int:
        return int((self.ends_ns - self.starts_ns).sum())

    @property
    def gaps(self) -> "Intervals":
        """What lies between the intervals."""
        return Intervals(self.ends_ns[:-1], self.starts_ns[1:])


def union(starts_ns: Nanoseconds, ends_ns: Nanoseconds) -> Intervals:
    """The time that at least one of the given intervals covers; they may come in any order."""
    lasting = ends_ns > starts_ns
    order = np.argsort(starts_ns[lasting], kind="stable")
    starts, ends = starts_ns[lasting][order], ends_ns[lasting][order]
    if not starts.size:
        return Intervals(starts, ends)
    latest = np.maximum.accumulate(ends)
    begins_anew = np.concatenate(([True], starts[1:] > latest[:-1]))
    lasts = np.concatenate((np.flatnonzero(begins_anew[1:]), [starts.size - 1]))
    return Intervals(starts[begins_anew], latest[lasts])


def intersection(one: Intervals, other: Intervals) -> Intervals:
    """The time that both cover."""
    times = np.concatenate((one.starts_ns, other.starts_ns, one.ends_ns, other.ends_ns))
    began = one.starts_ns.size + other.starts_ns.size
    steps = np.ones(times.size, dtype=np.int8)
    steps[began:] = -1
    # Where one interval ends as another begins, the end comes first: they share no time.
    order = np.lexsort((steps, times))
    covering = np.cumsum(steps[order], dtype=np.int64)
    both = np.flatnonzero(covering == 2)
    return Intervals(times[order][both], times[order][both + 1])


def difference(one: Intervals, other: Intervals) -> Intervals:
    """The time that the first covers and the second does not."""
    if not one.starts_ns.size:
        return one
    first, last = one.starts_ns[:1], one.ends_ns[-1:]
    inside = intersection(other, Intervals(first, last))
    starts = np.concatenate((first, inside.ends_ns))
    ends = np.concatenate((inside.starts_ns, last))
    lasting = ends > starts
    return intersection(one, Intervals(starts[lasting], ends[lasting]))
