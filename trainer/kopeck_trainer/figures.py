"""The figures of one process, as its reports carry them."""

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from kopeck_exporter.names import STEP_JITTER_SECONDS_BUCKETS, STEP_SECONDS_BUCKETS

RECENT_STEPS = 20


class Histogram:
    """Times by bucket: at most its bound, above the one before; the last has no bound."""

    def __init__(self, bounds: Sequence[float]) -> None:
        """`bounds` in seconds, rising."""
        self.counts = [0] * (len(bounds) + 1)
        self.sum_seconds = 0.0
        self._bounds = bounds

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(self._bounds, seconds)] += 1
        self.sum_seconds += seconds


@dataclass
class RecentRate:
    """Samples per second over the last steps, from the end of one step to the end of another.

    So the first step, with its compile, is not in it.
    """

    ends: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=RECENT_STEPS + 1))

    def add(self, ended_at_seconds: float, samples_in_total: int) -> None:
        self.ends.append((ended_at_seconds, samples_in_total))

    def samples_per_second(self) -> float | None:
        """As of the last step; None until two have ended."""
        if len(self.ends) < 2:
            return None
        (first_end, first_samples), (last_end, last_samples) = self.ends[0], self.ends[-1]
        seconds = last_end - first_end
        return (last_samples - first_samples) / seconds if seconds > 0 else None

    def mean_step_seconds(self) -> float | None:
        """From end to end, so with all that came between steps; None until two have ended."""
        if len(self.ends) < 2:
            return None
        return (self.ends[-1][0] - self.ends[0][0]) / (len(self.ends) - 1)

    def idle_seconds(self, now_seconds: float) -> float | None:
        """Since the last step ended; None before the first."""
        return max(0.0, now_seconds - self.ends[-1][0]) if self.ends else None


@dataclass
class Figures:
    """Cumulative since the process started; None is unknown."""

    samples: int = 0
    """Of this process."""
    tokens: int | None = None
    """Of this process."""
    step: int | None = None
    """Of the job, resumed steps included."""
    job_samples: int | None = None
    """Of the whole job, as of `step`."""
    loss: float | None = None
    nonfinite_losses: int | None = None
    """Steps of this process whose loss, or norm of gradients to clip, was NaN or infinite."""
    loss_spikes: int | None = None
    """Steps whose loss was far above those before."""
    step_seconds: float | None = None
    step_part_seconds: Mapping[str, float] | None = None
    """Of the steps after warm-up, by the parts of `kopeck_exporter.names.STEP_PARTS`."""
    steady_seconds: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT_STEPS))
    """Of the last steps since warm-up."""
    peak_device_bytes: int | None = None
    """The most that this process had allocated on its GPU."""
    checkpoint_step: int | None = None
    checkpoint_request: str | None = None
    """The last one that a checkpoint has answered."""
    compile_mode: str | None = None
    compile_decision: dict[str, Any] | None = None
    """What `auto` chose, why, and the numbers of each mode that it tried."""
    graph_breaks: int | None = None
    recompiles: int | None = None
    """After warm-up."""
    recompile_reasons: Mapping[str, int] | None = None
    """Those by `kopeck_exporter.names.RECOMPILE_REASONS`, which add up to them."""
    compile_cache_hits: int | None = None
    compile_cache_misses: int | None = None
    cudagraph_skips: int | None = None
    """Graphs that were to be recorded as CUDA graphs and could not be."""
    flops_per_sample: float | None = None
    """That training needs, without recomputation."""
    peak_flops: float | None = None
    """Of this process's device, per second."""
    gpu_uuid: str | None = None
    """Of this process's device, as NVIDIA's tools write it."""
    eager_fallbacks: int | None = None
    """Calls of compiled blocks and losses that ran eagerly, after warm-up."""
    comm_window: dict[str, Any] | None = None
    """Ratios of the last trace window, and when it ended."""
    profiler_on_at_seconds: float | None = None
    """The last moment, by the monotonic clock; infinite while it is on."""
    window_faults: Mapping[str, int] | None = None
    """How often a window was lost, by the words of `kopeck_exporter.names.WINDOW_FAULTS`."""
    numerics_mismatch: str | None = None
    """How a compile mode differs from eager, so that it is not used."""
    histogram: Histogram = field(default_factory=lambda: Histogram(STEP_SECONDS_BUCKETS))
    jitter: Histogram = field(default_factory=lambda: Histogram(STEP_JITTER_SECONDS_BUCKETS))
    """Of the steps after warm-up: how much longer each took than the median of those before it."""
    rate: RecentRate = field(default_factory=RecentRate)

    def add_steady(self, seconds: float) -> None:
        """A step after warm-up."""
        if len(self.steady_seconds) == RECENT_STEPS:
            self.jitter.add(max(0.0, seconds - median(self.steady_seconds)))
        self.steady_seconds.append(seconds)

    @property
    def steady_step_seconds(self) -> float | None:
        """Median of the last steps since warm-up; None before the first."""
        return median(self.steady_seconds) if self.steady_seconds else None

    def profiler_idle_seconds(self, now_seconds: float) -> float | None:
        """Since it was on last, by the monotonic clock; None before the first time."""
        last = self.profiler_on_at_seconds
        return None if last is None else max(0.0, now_seconds - last)

    @property
    def mfu(self) -> float | None:
        """Model FLOPs utilisation over the last steps, 0–1."""
        rate = self.rate.samples_per_second()
        if rate is None or self.flops_per_sample is None or self.peak_flops is None:
            return None
        return rate * self.flops_per_sample / self.peak_flops
