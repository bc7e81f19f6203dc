"""The totals of a rank process, and the arithmetic that never lets them fall."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from kopeck_exporter.names import PHASES, STEP_SECONDS_BUCKETS

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What one process, or several in a row, did; None where that is unknown.

    `step_bucket_counts` are per bucket, not cumulative, with one more for +Inf;
    `phase_seconds` are in the order of PHASES.
    """

    samples: int
    tokens: int | None
    step_bucket_counts: tuple[int, ...]
    step_seconds_sum: float
    phase_seconds: tuple[float, ...]
    compile_seconds: float | None
    graph_breaks: int | None
    recompiles: int | None

    @property
    def steps(self) -> int:
        return sum(self.step_bucket_counts)

    def plus(self, other: "Totals") -> "Totals":
        return _merged(self, other, operator.add)

    def raised_to(self, other: "Totals") -> "Totals":
        """The larger of each: a sender's rounding or re-labelling must not lower a counter."""
        return _merged(self, other, max)


ZERO = Totals(
    samples=0,
    tokens=None,
    step_bucket_counts=(0,) * (len(STEP_SECONDS_BUCKETS) + 1),
    step_seconds_sum=0.0,
    phase_seconds=(0.0,) * len(PHASES),
    compile_seconds=None,
    graph_breaks=None,
    recompiles=None,
)


def _merged(one: Totals, other: Totals, merge: Callable[[Any, Any], Any]) -> Totals:
    return Totals(
        samples=merge(one.samples, other.samples),
        tokens=_merged_if_known(one.tokens, other.tokens, merge),
        step_bucket_counts=tuple(map(merge, one.step_bucket_counts, other.step_bucket_counts)),
        step_seconds_sum=merge(one.step_seconds_sum, other.step_seconds_sum),
        phase_seconds=tuple(map(merge, one.phase_seconds, other.phase_seconds)),
        compile_seconds=_merged_if_known(one.compile_seconds, other.compile_seconds, merge),
        graph_breaks=_merged_if_known(one.graph_breaks, other.graph_breaks, merge),
        recompiles=_merged_if_known(one.recompiles, other.recompiles, merge),
    )


def _merged_if_known(
    one: Number | None, other: Number | None, merge: Callable[[Any, Any], Number]
) -> Number | None:
    if one is None or other is None:
        return one if other is None else other
    return merge(one, other)
