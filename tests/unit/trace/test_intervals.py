"""Sets of time against sets of numbers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kopeck.trace.intervals import Intervals, difference, intersection, union

_pairs = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 12)), max_size=15)

Pairs = list[tuple[int, int]]


def _union(pairs: Pairs) -> Intervals:
    starts = np.array([start for start, _ in pairs], dtype=np.int64)
    return union(starts, starts + np.array([length for _, length in pairs], dtype=np.int64))


def _moments(pairs: Pairs) -> set[int]:
    return {moment for start, length in pairs for moment in range(start, start + length)}


def _content(intervals: Intervals) -> set[int]:
    bounds = list(zip(intervals.starts_ns.tolist(), intervals.ends_ns.tolist(), strict=True))
    assert bounds == sorted(bounds)
    assert all(start < end for start, end in bounds)
    moments = [moment for start, end in bounds for moment in range(start, end)]
    assert len(moments) == len(set(moments)) == intervals.total_ns
    return set(moments)


@given(_pairs)
def test_a_union_covers_what_any_covers(pairs: Pairs) -> None:
    found = _union(pairs)
    assert _content(found) == _moments(pairs)
    assert (found.starts_ns[1:] > found.ends_ns[:-1]).all()


@given(_pairs, _pairs)
def test_an_intersection_covers_what_both_cover(one: Pairs, other: Pairs) -> None:
    assert _content(intersection(_union(one), _union(other))) == _moments(one) & _moments(other)


@given(_pairs, _pairs)
def test_a_difference_covers_what_the_other_does_not(one: Pairs, other: Pairs) -> None:
    assert _content(difference(_union(one), _union(other))) == _moments(one) - _moments(other)
