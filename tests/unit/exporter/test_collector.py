"""What a scrape shows: sums over ranks where a sum is meant, and nothing that is not known."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kopeck_exporter import names
from kopeck_exporter.collector import WorkerCollector
from kopeck_exporter.configuration import Configuration
from kopeck_exporter.devices import Devices
from kopeck_exporter.errors import ErrorCounts
from kopeck_exporter.report import read_report
from kopeck_exporter.sampler_report import read_sampler_report
from kopeck_exporter.worker import STALE_SECONDS, Worker
from tests.unit.exporter.reporting import (
    A_DECISION,
    A_WINDOW,
    a_message,
    a_sampler_message,
    steps_of,
)

KNOWN_FROM_THE_START = {names.EXPORTER_ERRORS_TOTAL.name, names.WORKER_INFO.name}


@dataclass
class Scraped:
    """A collector whose clock the test sets."""

    podinfo: Path
    processes: int = 2
    now_seconds: float = 0.0
    worker: Worker = field(init=False)
    devices: Devices = field(init=False)
    collector: WorkerCollector = field(init=False)

    def __post_init__(self) -> None:
        configuration = Configuration(
            job="llama",
            worker=3,
            attempt=2,
            processes=self.processes,
            socket=Path("unused"),
            podinfo=self.podinfo,
            port=0,
        )
        self.worker, self.devices = Worker(self.processes), Devices()
        errors = ErrorCounts()
        self.collector = WorkerCollector(
            configuration, self.worker, self.devices, errors, clock=lambda: self.now_seconds
        )

    def receive(self, **facts: Any) -> None:
        report = read_report(a_message(**facts))
        self.worker.receive(report, report.rank, self.now_seconds)

    def sampled(self, **facts: Any) -> None:
        report = read_sampler_report(a_sampler_message(**facts))
        self.devices.receive(report, 0, self.now_seconds)

    def samples(self) -> dict[tuple[str, ...], float]:
        """By name and the values of the labels beyond training_job and worker."""
        return dict(self._samples())

    def _samples(self) -> Iterator[tuple[tuple[str, ...], float]]:
        for family in self.collector.collect():
            for sample in family.samples:
                labels = dict(sample.labels)
                assert (labels.pop("training_job"), labels.pop("worker")) == ("llama", "3")
                yield (sample.name, *labels.values()), sample.value


@pytest.fixture
def scraped(tmp_path: Path) -> Scraped:
    return Scraped(tmp_path / "annotations")


def names_of(samples: dict[tuple[str, ...], float]) -> set[str]:
    return {name for name, *_ in samples}


def recompiles_in(samples: dict[tuple[str, ...], float]) -> dict[str, float]:
    """By reason."""
    return {key[1]: count for key, count in samples.items() if key[0] == "kopeck_recompiles_total"}


def test_before_the_first_report_only_attempt_and_error_counts_are_known(scraped: Scraped) -> None:
    samples = scraped.samples()
    assert names_of(samples) == KNOWN_FROM_THE_START
    assert samples[names.WORKER_INFO.name, "2"] == 1


def test_until_every_rank_has_reported_no_total_is_shown(scraped: Scraped) -> None:
    scraped.receive(rank=0)
    assert names_of(scraped.samples()) == KNOWN_FROM_THE_START


def test_two_ranks_are_summed_where_a_sum_is_meant(scraped: Scraped) -> None:
    scraped.receive(rank=0, tokens=100, phase_seconds={"compute": 4.0, "idle": 2.0})
    scraped.receive(rank=1, tokens=50, phase_seconds={"compute": 6.0}, compile_seconds=5.0)
    samples = scraped.samples()
    assert samples[names.SAMPLES_TOTAL.name,] == 16
    assert samples[names.TOKENS_TOTAL.name,] == 150
    assert samples[names.STEPS_TOTAL.name,] == 1
    assert samples[names.SAMPLES_PER_SECOND.name,] == 39.0
    assert samples[names.GRAPH_BREAKS_TOTAL.name,] == 2
    recompiles = recompiles_in(samples)
    assert recompiles == dict.fromkeys(names.RECOMPILE_REASONS, 0) | {"shape": 2, "other": 2}
    assert samples[names.COMPILE_SECONDS_TOTAL.name,] == 5.0
    assert samples[names.EAGER_FALLBACKS_TOTAL.name,] == 6
    assert samples[names.COMPILE_CACHE_HITS_TOTAL.name,] == 8
    assert samples[names.COMPILE_CACHE_MISSES_TOTAL.name,] == 10
    assert samples[names.CUDAGRAPH_SKIPS_TOTAL.name,] == 12
    assert samples[names.PHASE_SECONDS_TOTAL.name, "compute"] == 5.0
    assert samples[names.PHASE_SECONDS_TOTAL.name, "idle"] == 1.0
    assert samples[names.WORKER_INFO.name, "2", "default"] == 1


def test_a_loss_that_all_ranks_see_counts_once(scraped: Scraped) -> None:
    scraped.receive(rank=0, nonfinite_losses=3, loss_spikes=1)
    scraped.receive(rank=1, nonfinite_losses=2, loss_spikes=1)
    samples = scraped.samples()
    assert samples[names.NONFINITE_LOSSES_TOTAL.name,] == 3
    assert samples[names.LOSS_SPIKES_TOTAL.name,] == 1


def test_the_mode_that_was_chosen_is_shown_with_its_numbers(scraped: Scraped) -> None:
    scraped.receive(rank=0, compile_decision=A_DECISION)
    samples = scraped.samples()
    assert samples[names.COMPILE_CHOICE_INFO.name, "reduce-overhead"] == 1
    assert samples[names.COMPILE_TRIAL_COMPILE_SECONDS.name, "default"] == 30.0
    assert samples[names.COMPILE_TRIAL_STEP_SECONDS.name, "reduce-overhead"] == 0.2
    assert samples[names.COMPILE_BREAK_EVEN_STEPS.name,] == 143.0


def test_the_first_mode_has_no_break_even(scraped: Scraped) -> None:
    kept = {"mode": "default", "trials": A_DECISION["trials"]}
    scraped.receive(rank=0, compile_decision=kept)
    samples = scraped.samples()
    assert samples[names.COMPILE_CHOICE_INFO.name, "default"] == 1
    assert names.COMPILE_BREAK_EVEN_STEPS.name not in names_of(samples)


def test_phases_add_up_to_the_mean_wall_time_of_the_ranks(scraped: Scraped) -> None:
    scraped.receive(rank=0, phase_seconds={"startup": 3.5, "compute": 4.0, "idle": 2.5})
    scraped.receive(rank=1, phase_seconds={"startup": 2.0, "data_wait": 6.0})
    samples = scraped.samples()
    phases = [samples[names.PHASE_SECONDS_TOTAL.name, phase] for phase in names.PHASES]
    assert sum(phases) == (10.0 + 8.0) / 2


def test_parts_of_steps_are_means_over_the_ranks(scraped: Scraped) -> None:
    scraped.receive(rank=0, step_part_seconds={"forward_backward": 4.0, "data_wait": 1.0})
    scraped.receive(rank=1, step_part_seconds={"forward_backward": 5.0})
    samples = scraped.samples()
    name = names.STEP_PART_SECONDS_TOTAL.name
    assert samples[name, "forward_backward"] == 4.5
    assert samples[name, "data_wait"] == 0.5
    assert samples[name, "optimizer"] == 0.0


def test_parts_that_one_rank_does_not_know_are_absent(scraped: Scraped) -> None:
    scraped.receive(rank=0)
    scraped.receive(rank=1, step_part_seconds=None)
    assert names.STEP_PART_SECONDS_TOTAL.name not in names_of(scraped.samples())


def test_the_histogram_counts_each_step_once_and_ends_at_infinity(scraped: Scraped) -> None:
    took = [0.005, 0.01, 0.41, 0.41, 700.0]
    for rank in (0, 1):
        counts = steps_of(*took)
        scraped.receive(rank=rank, step_bucket_counts=counts, step_seconds_sum=sum(took))
    samples = scraped.samples()
    name = names.STEP_SECONDS.name
    buckets = {float(key[1]): value for key, value in samples.items() if key[0] == f"{name}_bucket"}
    assert list(buckets) == [*names.STEP_SECONDS_BUCKETS, float("inf")]
    assert buckets == {bound: sum(each <= bound for each in took) for bound in buckets}
    assert samples[f"{name}_count",] == samples[names.STEPS_TOTAL.name,] == 5
    assert samples[f"{name}_sum",] == pytest.approx(sum(took))


def test_jitter_and_median_are_those_of_the_first_rank(scraped: Scraped) -> None:
    counts = [97, 0, 0, 0, 2, *[0] * 8, 1]
    scraped.receive(rank=0, jitter_bucket_counts=counts, steady_step_seconds=0.4)
    scraped.receive(rank=1, jitter_bucket_counts=[5] * 14, steady_step_seconds=0.7)
    samples = scraped.samples()
    name = names.STEP_JITTER_SECONDS.name
    assert samples[f"{name}_bucket", "0.015"] == 99
    assert samples[f"{name}_bucket", "+Inf"] == samples[f"{name}_count",] == 100
    assert samples[names.STEP_MEDIAN_SECONDS.name,] == 0.4


@pytest.mark.parametrize(
    ("field", "metric"),
    [
        ("jitter_bucket_counts", names.STEP_JITTER_SECONDS),
        ("jitter_seconds_sum", names.STEP_JITTER_SECONDS),
        ("steady_step_seconds", names.STEP_MEDIAN_SECONDS),
        ("loss", names.LOSS),
        ("tokens", names.TOKENS_TOTAL),
        ("step_part_seconds", names.STEP_PART_SECONDS_TOTAL),
        ("compile_seconds", names.COMPILE_SECONDS_TOTAL),
        ("graph_breaks", names.GRAPH_BREAKS_TOTAL),
        ("recompiles", names.RECOMPILES_TOTAL),
        ("eager_fallbacks", names.EAGER_FALLBACKS_TOTAL),
        ("compile_cache_hits", names.COMPILE_CACHE_HITS_TOTAL),
        ("compile_cache_misses", names.COMPILE_CACHE_MISSES_TOTAL),
        ("cudagraph_skips", names.CUDAGRAPH_SKIPS_TOTAL),
        ("nonfinite_losses", names.NONFINITE_LOSSES_TOTAL),
        ("loss_spikes", names.LOSS_SPIKES_TOTAL),
        ("samples_per_second", names.SAMPLES_PER_SECOND),
        ("mfu", names.MFU_RATIO),
    ],
)
def test_what_no_rank_knows_is_absent(field: str, metric: names.Metric, scraped: Scraped) -> None:
    for rank in (0, 1):
        scraped.receive(rank=rank, **{field: None})
    shown = names_of(scraped.samples())
    assert not {metric.name, f"{metric.name}_bucket"} & shown


@pytest.mark.parametrize(
    ("field", "metric"),
    [
        ("tokens", names.TOKENS_TOTAL),
        ("compile_seconds", names.COMPILE_SECONDS_TOTAL),
        ("graph_breaks", names.GRAPH_BREAKS_TOTAL),
        ("recompiles", names.RECOMPILES_TOTAL),
        ("eager_fallbacks", names.EAGER_FALLBACKS_TOTAL),
        ("compile_cache_hits", names.COMPILE_CACHE_HITS_TOTAL),
        ("compile_cache_misses", names.COMPILE_CACHE_MISSES_TOTAL),
        ("cudagraph_skips", names.CUDAGRAPH_SKIPS_TOTAL),
        ("nonfinite_losses", names.NONFINITE_LOSSES_TOTAL),
        ("loss_spikes", names.LOSS_SPIKES_TOTAL),
        ("samples_per_second", names.SAMPLES_PER_SECOND),
        ("mfu", names.MFU_RATIO),
    ],
)
def test_a_sum_to_which_one_rank_adds_nothing_known_is_absent(
    field: str, metric: names.Metric, scraped: Scraped
) -> None:
    scraped.receive(rank=0, **{field: 5})
    scraped.receive(rank=1, **{field: None})
    assert metric.name not in names_of(scraped.samples())


def test_when_reports_stop_rates_and_loss_go_and_totals_stay(scraped: Scraped) -> None:
    for rank in (0, 1):
        scraped.receive(rank=rank)
    scraped.now_seconds = STALE_SECONDS + 1
    shown = names_of(scraped.samples())
    assert names.LOSS.name not in shown
    assert names.SAMPLES_PER_SECOND.name not in shown
    assert {names.SAMPLES_TOTAL.name, names.PHASE_SECONDS_TOTAL.name} <= shown


def test_when_one_rank_stops_the_workers_rate_is_unknown(scraped: Scraped) -> None:
    for rank in (0, 1):
        scraped.receive(rank=rank)
    scraped.now_seconds = STALE_SECONDS + 1
    scraped.receive(rank=1, seq=2)
    shown = names_of(scraped.samples())
    assert names.SAMPLES_PER_SECOND.name not in shown
    assert names.LOSS.name in shown


def test_reports_that_did_not_get_through_are_counted_once_each_rank_has_told_of_its_own(
    scraped: Scraped,
) -> None:
    errors = (names.EXPORTER_ERRORS_TOTAL.name, "socket", "dropped")
    scraped.sampled(errors={"socket": {"dropped": 2}})
    scraped.receive(rank=0, dropped_reports=0)
    assert errors not in scraped.samples()
    scraped.receive(rank=1, dropped_reports=5)
    assert scraped.samples()[errors] == 7


RATES = {names.SAMPLES_PER_SECOND.name, names.MFU_RATIO.name, names.STEP_MEDIAN_SECONDS.name}


@pytest.mark.parametrize(
    ("mean_step_seconds", "idle_seconds", "are_known"),
    [
        (0.1, 10.0, True),
        (0.1, 10.1, False),
        (30.0, 300.0, True),
        (30.0, 300.1, False),
        (None, 10.1, False),
    ],
)
def test_rates_go_when_no_step_has_ended_for_long_though_reports_go_on(
    mean_step_seconds: float | None, idle_seconds: float, *, are_known: bool, scraped: Scraped
) -> None:
    usual = {"mean_step_seconds": mean_step_seconds}
    scraped.receive(rank=0, step_idle_seconds=0.0, **usual)
    scraped.receive(rank=1, step_idle_seconds=idle_seconds, **usual)
    scraped.receive(rank=0, step_idle_seconds=idle_seconds, **usual)
    shown = names_of(scraped.samples())
    assert shown & RATES == (RATES if are_known else set())
    assert names.LOSS.name in shown


def test_the_age_of_a_report_is_time_without_a_step_too(scraped: Scraped) -> None:
    for rank in (0, 1):
        scraped.receive(rank=rank, step_idle_seconds=8.0, mean_step_seconds=0.1)
    scraped.now_seconds = 2.5
    assert not names_of(scraped.samples()) & RATES


def test_the_loss_is_that_of_the_rank_that_is_furthest(scraped: Scraped) -> None:
    scraped.receive(rank=0, step=7, loss=1.5)
    scraped.receive(rank=1, step=6, loss=1.9)
    assert scraped.samples()[names.LOSS.name,] == 1.5


def test_each_metric_has_the_labels_that_names_says(scraped: Scraped) -> None:
    for rank in (0, 1):
        scraped.receive(
            rank=rank,
            tokens=1,
            compile_decision=A_DECISION,
            comm_window=A_WINDOW,
            profiler_idle_seconds=9.0,
        )
    scraped.sampled()
    scraped.podinfo.write_text('kopeck.dev/hourly-rate-dollars="3.2"\n')
    shown = {}
    for family in scraped.collector.collect():
        for sample in family.samples:
            name = sample.name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")
            shown[name] = set(sample.labels) - {"le"}
    expected = {
        each.name: set(each.labels) for each in names.METRICS if each.exported_by == "worker"
    }
    assert {name: labels for name, labels in shown.items() if name in expected} == expected
    assert shown.keys() == expected.keys()
