"""The worker's metrics, built from what is known at the moment.

What is unknown or stale has no sample: absence is the only value that no query mistakes.
"""

from collections.abc import Callable, Iterator, Mapping
from time import monotonic

from prometheus_client import Metric as Family
from prometheus_client.registry import Collector

from kopeck_exporter import names
from kopeck_exporter.comm_window import mean_ratio
from kopeck_exporter.configuration import Configuration
from kopeck_exporter.device_metrics import cpu_families, gpu_families
from kopeck_exporter.devices import Devices
from kopeck_exporter.errors import SAMPLER_SOURCES, WINDOW_SOURCE, ErrorCounts, Fault
from kopeck_exporter.families import Families
from kopeck_exporter.known import largest, total
from kopeck_exporter.podinfo import InvalidRateError, hourly_rate_dollars
from kopeck_exporter.sampler_report import GpuReport
from kopeck_exporter.totals import Totals
from kopeck_exporter.worker import RankState, Worker, furthest_report, mfu, samples_per_second

Clock = Callable[[], float]

SUMMED: Mapping[names.Metric, str] = {
    names.SAMPLES_TOTAL: "samples",
    names.TOKENS_TOTAL: "tokens",
    names.GRAPH_BREAKS_TOTAL: "graph_breaks",
    names.EAGER_FALLBACKS_TOTAL: "eager_fallbacks",
    names.COMPILE_CACHE_HITS_TOTAL: "compile_cache_hits",
    names.COMPILE_CACHE_MISSES_TOTAL: "compile_cache_misses",
    names.CUDAGRAPH_SKIPS_TOTAL: "cudagraph_skips",
}
"""The field of `Totals` whose sum over the ranks each metric is."""

LARGEST: Mapping[names.Metric, str] = {
    names.COMPILE_SECONDS_TOTAL: "compile_seconds",
    names.NONFINITE_LOSSES_TOTAL: "nonfinite_losses",
    names.LOSS_SPIKES_TOTAL: "loss_spikes",
}
"""Likewise, of the rank that has most."""

MARKED_SECONDS = 6.0
"""How old a gauge of a GPU is at most when it is scraped: one second between two samples, one
until it is sent, four until the page that is served is written anew. Counters that are read less
often, and what a DCGM exporter tells, may be older: the mark does not cover them."""

COMM_RATIOS: Mapping[names.Metric, str] = {
    names.COMM_OVERLAP_RATIO: "overlap_ratio",
    names.COMM_RATIO: "comm_ratio",
    names.COMM_EXPOSED_RATIO: "exposed_ratio",
    names.COMM_WAIT_RATIO: "wait_ratio",
}
"""The field of `CommWindow` whose mean over the ranks each metric is."""


class WorkerCollector(Collector):
    """Everything that one sidecar exports."""

    def __init__(
        self,
        configuration: Configuration,
        worker: Worker,
        devices: Devices,
        errors: ErrorCounts,
        clock: Clock = monotonic,
    ) -> None:
        self._podinfo = configuration.podinfo
        self._attempt = str(configuration.attempt)
        self._families = Families(
            {"training_job": configuration.job, "worker": str(configuration.worker)}
        )
        self._worker = worker
        self._devices = devices
        self._errors = errors
        self._clock = clock

    def collect(self) -> Iterator[Family]:
        now_seconds = self._clock()
        ranks = self._worker.all_ranks()
        if ranks is not None:
            yield from self._totals([rank.totals for rank in ranks])
            yield from self._recent(ranks, now_seconds)
            yield from self._comm_window(ranks, now_seconds)
            yield from self._profiler_active(ranks, now_seconds)
        gpus = self._devices.gpus(now_seconds, self._worker.gpu_uuids())
        yield from gpu_families(self._families, gpus)
        yield from cpu_families(self._families, self._devices.cpu(now_seconds))
        yield self._worker_info(gpus)
        yield from self._compile_decision()
        yield from self._hourly_rate()
        yield self._error_counts()

    def _totals(self, ranks: list[Totals]) -> Iterator[Family]:
        first = ranks[0]
        yield from self._histogram(
            names.STEP_SECONDS, first.step_bucket_counts, first.step_seconds_sum
        )
        yield from self._histogram(
            names.STEP_JITTER_SECONDS, first.jitter_bucket_counts, first.jitter_seconds_sum
        )
        phases = [each.phase_seconds for each in ranks]
        yield self._mean_seconds(names.PHASE_SECONDS_TOTAL, names.PHASES, phases)
        parts = [each.step_part_seconds for each in ranks if each.step_part_seconds is not None]
        if len(parts) == len(ranks):
            yield self._mean_seconds(names.STEP_PART_SECONDS_TOTAL, names.STEP_PARTS, parts)
        yield from self._families.if_known(names.STEPS_TOTAL, first.steps)
        for metric, name in SUMMED.items():
            yield from self._families.if_known(metric, total(getattr(each, name) for each in ranks))
        yield from self._recompiles(ranks)
        for metric, name in LARGEST.items():
            yield from self._families.if_known(
                metric, largest(getattr(each, name) for each in ranks)
            )

    def _recompiles(self, ranks: list[Totals]) -> Iterator[Family]:
        """All reasons, also those that never were: a counter that begins at 1 has no rate."""
        known = [each.recompiles_by_reason for each in ranks if each.recompiles_by_reason]
        if len(known) < len(ranks):
            return
        counts = map(sum, zip(*known, strict=True))
        values = [
            ({"reason": reason}, count)
            for reason, count in zip(names.RECOMPILE_REASONS, counts, strict=True)
        ]
        yield self._families.of(names.RECOMPILES_TOTAL, values)

    def _recent(self, ranks: list[RankState], now_seconds: float) -> Iterator[Family]:
        fresh = any(rank.is_fresh(now_seconds) for rank in ranks)
        yield from self._families.if_known(
            names.LOSS, furthest_report(ranks).loss if fresh else None
        )
        if ranks[0].is_stepping(now_seconds):
            median = ranks[0].report.steady_step_seconds
            yield from self._families.if_known(names.STEP_MEDIAN_SECONDS, median)
        rate = samples_per_second(ranks, now_seconds)
        yield from self._families.if_known(names.SAMPLES_PER_SECOND, rate)
        yield from self._families.if_known(names.MFU_RATIO, mfu(ranks, now_seconds))

    def _comm_window(self, ranks: list[RankState], now_seconds: float) -> Iterator[Family]:
        """Nothing until each rank has had a window, and once one has stopped reporting."""
        windows = [
            rank.report.comm_window
            for rank in ranks
            if rank.report.comm_window and rank.is_fresh(now_seconds)
        ]
        if len(windows) < len(ranks):
            return
        for metric, name in COMM_RATIOS.items():
            yield from self._families.if_known(metric, mean_ratio(windows, name))
        oldest = min(window.time_unix_seconds for window in windows)
        yield from self._families.if_known(names.COMM_WINDOW_TIMESTAMP_SECONDS, oldest)

    def _profiler_active(self, ranks: list[RankState], now_seconds: float) -> Iterator[Family]:
        idle_seconds = [
            rank.report.profiler_idle_seconds + rank.age_seconds(now_seconds)
            for rank in ranks
            if rank.report.profiler_idle_seconds is not None
        ]
        if idle_seconds:
            is_active = min(idle_seconds) <= MARKED_SECONDS
            yield from self._families.if_known(names.PROFILER_ACTIVE, float(is_active))

    def _worker_info(self, gpus: list[GpuReport]) -> Family:
        """Without the labels compile_mode and gpu_model while those are unknown."""
        labels = {"attempt": self._attempt}
        if gpus and gpus[0].model is not None:
            labels["gpu_model"] = gpus[0].model
        ranks = self._worker.ranks()
        if ranks and (mode := furthest_report(ranks).compile_mode) is not None:
            labels["compile_mode"] = mode
        return self._families.of(names.WORKER_INFO, [(labels, 1)])

    def _compile_decision(self) -> Iterator[Family]:
        """Nothing until one is made."""
        ranks = self._worker.ranks()
        decision = furthest_report(ranks).compile_decision if ranks else None
        if decision is None:
            return
        yield self._families.of(names.COMPILE_CHOICE_INFO, [({"mode": decision.mode}, 1)])
        for metric, name in (
            (names.COMPILE_TRIAL_COMPILE_SECONDS, "compile_seconds"),
            (names.COMPILE_TRIAL_STEP_SECONDS, "step_seconds"),
        ):
            values = [({"mode": each.mode}, getattr(each, name)) for each in decision.trials]
            yield self._families.of(metric, values)
        yield from self._families.if_known(
            names.COMPILE_BREAK_EVEN_STEPS, decision.break_even_steps
        )

    def _histogram(
        self, metric: names.Metric, counts: tuple[int, ...] | None, seconds: float | None
    ) -> Iterator[Family]:
        """Nothing where `counts`, per bucket, or the sum are unknown."""
        if counts is None or seconds is None:
            return
        family = self._families.of(metric, [])
        labels, so_far = dict(self._families.labels), 0
        bounds = (*map(str, metric.buckets), "+Inf")
        for bound, count in zip(bounds, counts, strict=True):
            so_far += count
            family.add_sample(f"{metric.name}_bucket", {**labels, "le": bound}, so_far)
        family.add_sample(f"{metric.name}_count", labels, so_far)
        family.add_sample(f"{metric.name}_sum", labels, seconds)
        yield family

    def _mean_seconds(
        self, metric: names.Metric, keys: tuple[str, ...], ranks: list[tuple[float, ...]]
    ) -> Family:
        """By the metric's last label, one of `keys`."""
        label = metric.labels[-1]
        sums = map(sum, zip(*ranks, strict=True))
        values = [
            ({label: key}, seconds / len(ranks)) for key, seconds in zip(keys, sums, strict=True)
        ]
        return self._families.of(metric, values)

    def _hourly_rate(self) -> Iterator[Family]:
        try:
            rate = hourly_rate_dollars(self._podinfo)
        except InvalidRateError:
            self._errors.count(Fault.INVALID_RATE)
        except (OSError, UnicodeDecodeError):
            self._errors.count(Fault.UNREADABLE)
        else:
            yield from self._families.if_known(names.HOURLY_RATE_DOLLARS, rate)

    def _error_counts(self) -> Family:
        """Our own at zero where they never occurred: there, zero is known."""
        foreign = {*SAMPLER_SOURCES, WINDOW_SOURCE}
        own = {fault: 0 for fault in Fault if fault.source not in foreign}
        counts: dict[Fault, float] = {
            **own,
            **self._errors.by_fault(),
            **self._devices.errors(),
            **self._window_faults(),
        }
        if (dropped := self._dropped_reports()) is not None:
            counts[Fault.DROPPED] += dropped
        else:
            del counts[Fault.DROPPED]
        values = [
            ({"source": fault.source, "reason": fault.reason}, count)
            for fault, count in counts.items()
        ]
        return self._families.of(names.EXPORTER_ERRORS_TOTAL, values)

    def _dropped_reports(self) -> float | None:
        """Of all ranks; None before each has told of its own."""
        ranks = self._worker.all_ranks()
        return None if ranks is None else total(each.totals.dropped_reports for each in ranks)

    def _window_faults(self) -> dict[Fault, float]:
        """Of all ranks; nothing before the first."""
        ranks = self._worker.all_ranks() or []
        counts = [each for rank in ranks if (each := rank.totals.window_faults) is not None]
        return {
            Fault((WINDOW_SOURCE, reason)): sum(of_rank[place] for of_rank in counts)
            for place, reason in enumerate(names.WINDOW_FAULTS)
            if counts
        }
