"""The numbers of Holistic Trace Analysis 0.5.0, to compare with: its rules, not ours.

They differ from the exact ones of `breakdown`: times are whole microseconds, kernels shortened to
them; what has a stream is on the GPU, by whatever category; kinds are told by names; the last
step's events are left out. https://github.com/facebookresearch/HolisticTraceAnalysis
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from kopeck.trace.events import ON_GPU, UNKNOWN, RankTrace

_Microseconds = npt.NDArray[np.float64]
_COMMUNICATION = re.compile(r"^nccl.*Kernel")
_MEMORY = re.compile(r"(^Memcpy)|(^Memset)|(^dma)")
_NO_COMPUTE = re.compile(r"(^nccl.*Kernel)|(.*(Memcpy)|(Memset))|(.*Sync)")
_LAUNCHES = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync"}
_SYNCHRONISATIONS = {"Event Sync", "Context Sync"}
_KERNEL_WAIT_SHORTER_THAN_US = 30
_LONG_CALL_US = 50
_LONG_DELAY_US = 100


class IdleUs(NamedTuple):
    """Idle microseconds of one stream by cause."""

    host_wait: float
    kernel_wait: float
    other: float


class LaunchStats(NamedTuple):
    """Of calls that launch, each with what it launched."""

    pairs: int
    cpu_us: float
    gpu_us: float
    delay_p50_us: float
    short_kernels: int
    """Shorter than their call, which takes at most 50 µs."""
    long_calls: int
    """Over 50 µs."""
    long_delays: int
    """Over 100 µs."""


@dataclass(frozen=True)
class HtaFigures:
    """What HTA answers for one rank, in its microseconds."""

    overlap_percent: float | None
    """To two decimals; None without communication, where HTA has NaN."""
    communication_us: float
    overlap_us: float
    idle_us: float
    compute_us: float
    non_compute_us: float
    kernel_time_us: float
    idle_by_stream: dict[int, IdleUs]
    launches: LaunchStats | None
    """None without a launch."""

    @property
    def exposed_us(self) -> float:
        return self.communication_us - self.overlap_us


@dataclass(frozen=True)
class _Rows:
    """HTA's table of a trace."""

    names: npt.NDArray[np.str_]
    categories: npt.NDArray[np.int8]
    starts: _Microseconds
    durations: _Microseconds
    correlations: npt.NDArray[np.int64]
    streams: npt.NDArray[np.int32]

    @property
    def ends(self) -> _Microseconds:
        return self.starts + self.durations

    def at(self, rows: npt.NDArray[np.intp]) -> "_Rows":
        return _Rows(
            self.names[rows],
            self.categories[rows],
            self.starts[rows],
            self.durations[rows],
            self.correlations[rows],
            self.streams[rows],
        )

    def named(self, names: set[str]) -> npt.NDArray[np.bool_]:
        return np.isin(self.names, list(names))


def hta_figures(trace: RankTrace, *, last_step: bool = False) -> HtaFigures | None:
    """What HTA answers; None where it finds nothing on a GPU.

    The trace is to be read with everything that HTA looks at. `last_step` keeps the last step of
    several, as HTA's `include_last_profiler_step`.
    """
    rows = _rows(trace)
    kept = _window(rows, last_step=last_step)
    first = rows.starts[0] if trace.has_first_event and 0 in kept else np.nan
    runtime = _runtime_starts(rows, first)
    rows, runtime = rows.at(kept), runtime[kept]
    on_gpu = np.flatnonzero(rows.streams != UNKNOWN)
    if not on_gpu.size:
        return None
    gpu = rows.at(on_gpu)
    everything = _merged(gpu)
    compute = _merged(gpu.at(np.flatnonzero(_is_compute(gpu.names))))
    communication = _merged(gpu.at(np.flatnonzero(_matching(_COMMUNICATION, gpu.names))))
    overlap_us = _overlap(communication, compute)
    communication_us, compute_us = _total(communication), _total(compute)
    kernel_time_us = float(everything[1][-1] - everything[0][0])
    idle_us = kernel_time_us - _total(everything)
    return HtaFigures(
        overlap_percent=(
            round(100 * overlap_us / communication_us, 2) if communication_us else None
        ),
        communication_us=communication_us,
        overlap_us=overlap_us,
        idle_us=idle_us,
        compute_us=compute_us,
        non_compute_us=kernel_time_us - compute_us - idle_us,
        kernel_time_us=kernel_time_us,
        idle_by_stream=_idle_by_stream(gpu, runtime[on_gpu]),
        launches=_launch_stats(rows),
    )


def _rows(trace: RankTrace) -> _Rows:
    events = trace.events
    durations = (events.ends_ns - events.starts_ns) / 1000
    # Counted from the first event, so that sums of times stay exact.
    base = int(events.starts_ns.min()) // 1000 if len(events) else 0
    starts = (events.starts_ns - base * 1000) / 1000
    if trace.has_float_times:
        exact = events.starts_ns / 1000
        starts = np.ceil(exact) - base
        durations = np.floor(exact + durations) - base - starts
    names = np.array(events.names or ("",), dtype=object)[events.name_ids]
    return _Rows(names, events.categories, starts, durations, events.correlations, events.streams)


def _is_on_gpu(rows: _Rows) -> npt.NDArray[np.bool_]:
    linked = (rows.streams >= 0) & (rows.correlations >= 0)
    return linked | rows.named(_SYNCHRONISATIONS)


def _runtime_starts(rows: _Rows, first: float) -> _Microseconds:
    """Where a row's call began, NaN if there is none.

    HTA marks an event whose call is not in the trace by 0, and takes the first row for the call.
    """
    on_gpu = _is_on_gpu(rows)
    calls = np.flatnonzero(~on_gpu & (rows.correlations != UNKNOWN))
    # The last call of a correlation counts.
    begun = dict(zip(rows.correlations[calls].tolist(), rows.starts[calls].tolist(), strict=True))
    return np.array(
        [
            begun.get(correlation, first) if is_on_gpu and correlation >= 0 else np.nan
            for correlation, is_on_gpu in zip(rows.correlations.tolist(), on_gpu, strict=True)
        ],
        dtype=np.float64,
    )


def _window(rows: _Rows, *, last_step: bool) -> npt.NDArray[np.intp]:
    """The rows that HTA keeps: with several steps, what was launched before the last one began."""
    is_step = _matching(re.compile(r".*ProfilerStep"), rows.names)
    if len(set(rows.names[is_step])) < 2:
        return np.arange(rows.starts.size)
    on_gpu = _is_on_gpu(rows)
    steps = is_step & ~on_gpu
    if last_step:
        cpu = ~on_gpu & (rows.starts <= rows.ends[steps].max())
    else:
        cpu = ~on_gpu & (rows.starts < rows.starts[steps].max())
    gpu = np.flatnonzero(on_gpu)
    # A join: what several calls launched is there as often.
    correlations, counts = np.unique(rows.correlations[cpu], return_counts=True)
    at = np.searchsorted(correlations, rows.correlations[gpu]).clip(max=correlations.size - 1)
    times = np.where(correlations[at] == rows.correlations[gpu], counts[at], 0)
    return np.concatenate((np.repeat(gpu, times), np.flatnonzero(cpu)))


def _merged(rows: _Rows) -> tuple[_Microseconds, _Microseconds]:
    """Starts and ends of what does not touch, by HTA's rule: rounding may leave negative ones."""
    order = np.argsort(rows.starts, kind="stable")
    starts, ends = rows.starts[order], rows.ends[order]
    if not starts.size:
        return starts, ends
    latest = np.maximum.accumulate(ends)
    begins = np.flatnonzero(np.concatenate(([True], starts[1:] > latest[:-1])))
    return starts[begins], np.maximum.reduceat(ends, begins)


def _total(merged: tuple[_Microseconds, _Microseconds]) -> float:
    return float(merged[1].sum() - merged[0].sum())


def _overlap(
    one: tuple[_Microseconds, _Microseconds], other: tuple[_Microseconds, _Microseconds]
) -> float:
    times = np.concatenate((*one, *other))
    steps = np.repeat([1, -1, 2, -2], [one[0].size, one[1].size, other[0].size, other[1].size])
    order = np.argsort(times, kind="stable")
    both = np.flatnonzero(np.cumsum(steps[order]) == 3)
    both = both[both + 1 < times.size]
    return float((times[order][both + 1] - times[order][both]).sum())


def _idle_by_stream(gpu: _Rows, runtime: _Microseconds) -> dict[int, IdleUs]:
    is_kernel = np.isin(gpu.categories, ON_GPU)
    return {
        int(stream): _idle(gpu.at(own), runtime[own])
        for stream in np.unique(gpu.streams[is_kernel])
        if (own := np.flatnonzero(is_kernel & (gpu.streams == stream))).size
    }


def _idle(stream: _Rows, runtime: _Microseconds) -> IdleUs:
    order = np.argsort(stream.starts, kind="stable")
    starts, ends, called = stream.starts[order], stream.ends[order], runtime[order]
    gaps = starts[1:] - ends[:-1]
    is_host = called[1:] > ends[:-1]
    is_kernel = ~is_host & (gaps < _KERNEL_WAIT_SHORTER_THAN_US)
    is_other = ~is_host & ~is_kernel
    return IdleUs(*(float(gaps[each].sum()) for each in (is_host, is_kernel, is_other)))


def _launch_stats(rows: _Rows) -> LaunchStats | None:
    wanted = np.unique(rows.correlations[rows.named(_LAUNCHES)])
    is_wanted = np.isin(rows.correlations, wanted)
    cpu = rows.at(np.flatnonzero(is_wanted & (rows.streams == UNKNOWN)))
    gpu = rows.at(np.flatnonzero(is_wanted & (rows.streams != UNKNOWN)))
    order = np.argsort(gpu.correlations, kind="stable")
    first = np.searchsorted(gpu.correlations[order], cpu.correlations, side="left")
    behind = np.searchsorted(gpu.correlations[order], cpu.correlations, side="right")
    calls = np.repeat(np.arange(cpu.starts.size), behind - first)
    if not calls.size:
        return None
    offsets = np.arange(calls.size) - np.repeat(
        np.cumsum(behind - first) - (behind - first), behind - first
    )
    launched = order[first[calls] + offsets]
    cpu_us, gpu_us = cpu.durations[calls], gpu.durations[launched]
    delays = np.maximum(gpu.starts[launched] - cpu.starts[calls] - cpu_us, 0)
    return LaunchStats(
        pairs=calls.size,
        cpu_us=float(cpu_us.sum()),
        gpu_us=float(gpu_us.sum()),
        delay_p50_us=float(np.median(delays)),
        short_kernels=int(((gpu_us < cpu_us) & (cpu_us <= _LONG_CALL_US)).sum()),
        long_calls=int((cpu_us > _LONG_CALL_US).sum()),
        long_delays=int((delays > _LONG_DELAY_US).sum()),
    )


def _is_compute(names: npt.NDArray[np.str_]) -> npt.NDArray[np.bool_]:
    return ~_matching(_MEMORY, names) & ~_matching(_NO_COMPUTE, names)


def _matching(pattern: re.Pattern[str], names: npt.NDArray[np.str_]) -> npt.NDArray[np.bool_]:
    matches = {name: pattern.match(name) is not None for name in set(names.tolist())}
    return np.array([matches[name] for name in names.tolist()], dtype=np.bool_)
