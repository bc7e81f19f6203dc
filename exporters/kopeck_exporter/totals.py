"""The totals of a rank process, and the arithmetic that never lets them fall."""

import operator
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from kopeck_exporter.names import PHASES, STEP_SECONDS_BUCKETS


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What one process, or several in a row, did; None where that is unknown.

    `step_bucket_counts` and `jitter_bucket_counts` are per bucket, not cumulative, with one more
    for +Inf;
    `phase_seconds` are in the order of PHASES, `step_part_seconds` in that of STEP_PARTS,
    `recompiles_by_reason` in that of RECOMPILE_REASONS, `window_faults` in that of WINDOW_FAULTS.
    """

    samples: int
    tokens: int | None = None
    step_bucket_counts: tuple[int, ...]
    step_seconds_sum: float
    jitter_bucket_counts: tuple[int, ...] | None = None
    jitter_seconds_sum: float | None = None
    phase_seconds: tuple[float, ...]
    step_part_seconds: tuple[float, ...] | None = None
    compile_seconds: float | None = None
    graph_breaks: int | None = None
    recompiles_by_reason: tuple[int, ...] | None = None
    compile_cache_hits: int | None = None
    compile_cache_misses: int | None = None
    cudagraph_skips: int | None = None
    eager_fallbacks: int | None = None
    nonfinite_losses: int | None = None
    loss_spikes: int | None = None
    window_faults: tuple[float, ...] | None = None
    dropped_reports: int | None = None
    """That never got here."""

    @property
    def steps(self) -> int:
        return sum(self.step_bucket_counts)

    @property
    def recompiles(self) -> int | None:
        return None if self.recompiles_by_reason is None else sum(self.recompiles_by_reason)

    def plus(self, other: "Totals") -> "Totals":
        return _merged(self, other, operator.add)

    def raised_to(self, other: "Totals") -> "Totals":
        """The larger of each: a sender's rounding or re-labelling must not lower a counter."""
        return _merged(self, other, max)


_NAMES = tuple(field.name for field in fields(Totals))

ZERO = Totals(
    samples=0,
    step_bucket_counts=(0,) * (len(STEP_SECONDS_BUCKETS) + 1),
    step_seconds_sum=0.0,
    phase_seconds=(0.0,) * len(PHASES),
)


def _merged(one: Totals, other: Totals, merge: Callable[[Any, Any], Any]) -> Totals:
    values = {
        name: _merged_value(getattr(one, name), getattr(other, name), merge) for name in _NAMES
    }
    return Totals(**values)


def _merged_value(one: Any, other: Any, merge: Callable[[Any, Any], Any]) -> Any:
    if one is None or other is None:
        return one if other is None else other
    if isinstance(one, tuple):
        return tuple(map(merge, one, other))
    return merge(one, other)
