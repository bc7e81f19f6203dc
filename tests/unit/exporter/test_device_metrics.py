"""GPUs and CPU limits in a scrape: what samplers know, for as long as they say it."""

from pathlib import Path

import pytest

from kopeck_exporter import names
from kopeck_exporter.devices import STALE_SECONDS
from kopeck_exporter.errors import WINDOW_SOURCE, Fault
from kopeck_exporter.sampler_report import read_sampler_report
from tests.unit.exporter.reporting import A_WINDOW, a_gpu_message, a_sampler_message
from tests.unit.exporter.test_collector import KNOWN_FROM_THE_START, Scraped, names_of

GPU_0 = ("0", "GPU-0")


@pytest.fixture
def scraped(tmp_path: Path) -> Scraped:
    return Scraped(tmp_path / "annotations")


def test_gpus_and_cpu_are_shown_before_any_rank_reports(scraped: Scraped) -> None:
    scraped.sampled()
    samples = scraped.samples()
    assert samples[names.SM_UTILIZATION_RATIO.name, *GPU_0] == 0.965
    assert samples[names.GPU_THROTTLED_SECONDS_TOTAL.name, *GPU_0, "hw_thermal"] == 1.5
    assert samples[names.GPU_NVLINK_BYTES_TOTAL.name, "1", "GPU-1", "sent"] == 20.0
    assert samples[names.GPU_XID_ERRORS_TOTAL.name, *GPU_0, "31"] == 2
    assert samples[names.CPU_THROTTLED_SECONDS_TOTAL.name,] == 2.5
    assert samples[names.CPU_PERIODS_TOTAL.name,] == 400
    assert samples[names.CPU_THROTTLED_PERIODS_TOTAL.name,] == 100
    assert samples[names.WORKER_INFO.name, "2", "NVIDIA H200"] == 1
    assert samples[names.EXPORTER_ERRORS_TOTAL.name, "nvml", "hung"] == 1


def test_when_the_sampler_falls_silent_all_of_it_goes_but_the_errors(scraped: Scraped) -> None:
    scraped.sampled()
    scraped.now_seconds = STALE_SECONDS + 1
    samples = scraped.samples()
    assert names_of(samples) == KNOWN_FROM_THE_START
    assert samples[names.EXPORTER_ERRORS_TOTAL.name, "nvml", "hung"] == 1
    scraped.sampled(seq=2)
    assert names.SM_UTILIZATION_RATIO.name in names_of(scraped.samples())


def test_what_one_gpu_does_not_tell_is_absent_of_it_alone(scraped: Scraped) -> None:
    bare = {"gpu": 0, "uuid": "GPU-0"}
    scraped.sampled(gpus=[bare, a_gpu_message(1)])
    shown = scraped.samples()
    assert not [key for key in shown if "GPU-0" in key]
    assert shown[names.GPU_POWER_WATTS.name, "1", "GPU-1"] == 693.0


def test_a_message_that_came_late_changes_nothing(scraped: Scraped) -> None:
    scraped.sampled(seq=5, gpus=[a_gpu_message(power_watts=500.0)])
    scraped.sampled(seq=4, gpus=[a_gpu_message(power_watts=400.0)])
    assert scraped.samples()[names.GPU_POWER_WATTS.name, *GPU_0] == 500.0


def test_a_sampler_that_connects_anew_is_heard(scraped: Scraped) -> None:
    scraped.sampled(seq=900)
    again = a_sampler_message(seq=1, gpus=[a_gpu_message(power_watts=400.0)])
    scraped.devices.receive(read_sampler_report(again), 1, scraped.now_seconds)
    assert scraped.samples()[names.GPU_POWER_WATTS.name, *GPU_0] == 400.0


def test_of_the_gpus_that_the_sidecar_sees_those_of_the_ranks_are_shown(scraped: Scraped) -> None:
    of_the_node = [a_gpu_message(index) for index in range(8)]
    scraped.sampled(origin="sidecar", gpus=of_the_node, cpu=None)
    assert names.GPU_POWER_WATTS.name not in names_of(scraped.samples())
    scraped.receive(rank=0, gpu_uuid="GPU-3")
    scraped.receive(rank=1, gpu_uuid="GPU-4")
    shown = {key[1:] for key in scraped.samples() if key[0] == names.GPU_POWER_WATTS.name}
    assert shown == {("3", "GPU-3"), ("4", "GPU-4")}


def test_a_trace_window_is_the_mean_over_the_ranks(scraped: Scraped) -> None:
    scraped.receive(rank=0, comm_window=A_WINDOW)
    assert not [name for name in names_of(scraped.samples()) if "_comm_" in name]
    scraped.receive(rank=1, comm_window=A_WINDOW | {"time": 1.5e9, "comm_ratio": 0.2})
    samples = scraped.samples()
    assert samples[names.COMM_RATIO.name,] == pytest.approx(0.3)
    assert samples[names.COMM_OVERLAP_RATIO.name,] == 0.75
    assert samples[names.COMM_WINDOW_TIMESTAMP_SECONDS.name,] == 1.5e9


@pytest.mark.parametrize("field", ["overlap_ratio", "wait_ratio"])
def test_what_a_window_does_not_know_is_absent(scraped: Scraped, field: str) -> None:
    for rank in (0, 1):
        scraped.receive(rank=rank, comm_window=A_WINDOW | {field: None})
    shown = names_of(scraped.samples())
    assert f"kopeck_comm_{field}" not in shown
    assert names.COMM_EXPOSED_RATIO.name in shown


def test_the_window_of_a_rank_that_has_stopped_is_no_news(scraped: Scraped) -> None:
    for rank in (0, 1):
        scraped.receive(rank=rank, comm_window=A_WINDOW)
    scraped.now_seconds = STALE_SECONDS + 1
    assert not [name for name in names_of(scraped.samples()) if "_comm_" in name]


@pytest.mark.parametrize(("idle_seconds", "age_seconds"), [(0.0, 6.0), (3.0, 3.0), (6.0, 0.0)])
def test_readings_of_a_gpu_are_marked_until_they_are_younger_than_the_window(
    scraped: Scraped, idle_seconds: float, age_seconds: float
) -> None:
    scraped.receive(rank=0)
    scraped.receive(rank=1)
    assert names.PROFILER_ACTIVE.name not in names_of(scraped.samples())
    scraped.receive(rank=1, seq=2, profiler_idle_seconds=idle_seconds)
    scraped.now_seconds += age_seconds
    assert scraped.samples()[names.PROFILER_ACTIVE.name,] == 1
    scraped.now_seconds += 0.5
    assert scraped.samples()[names.PROFILER_ACTIVE.name,] == 0


def test_windows_that_ranks_lost_are_errors(scraped: Scraped) -> None:
    def counts() -> dict[str, float]:
        return {
            key[2]: value
            for key, value in scraped.samples().items()
            if key[0] == names.EXPORTER_ERRORS_TOTAL.name and key[1] == "window"
        }

    scraped.receive(rank=0, window_faults={"hung": 2})
    scraped.receive(rank=1)
    assert counts() == dict.fromkeys(names.WINDOW_FAULTS, 0) | {"hung": 2}
    scraped.receive(rank=1, seq=2, window_faults={"hung": 1, "profiler": 4})
    assert counts() == dict.fromkeys(names.WINDOW_FAULTS, 0) | {"hung": 3, "profiler": 4}


def test_every_reason_to_lose_a_window_is_a_fault_of_the_exporter() -> None:
    faults = {each.reason for each in Fault if each.source == WINDOW_SOURCE}
    assert faults == set(names.WINDOW_FAULTS)


def test_a_thousand_attempts_of_processes_and_gpus_leave_no_series_behind(
    scraped: Scraped,
) -> None:
    scraped.sampled()
    for rank in (0, 1):
        scraped.receive(rank=rank, comm_window=A_WINDOW)
    series = len(scraped.samples())
    for attempt in range(1, 1001):
        gpus = [a_gpu_message(0, uuid=f"GPU-{attempt}-0"), a_gpu_message(1, uuid=f"GPU-{attempt}")]
        report = read_sampler_report(a_sampler_message(gpus=gpus))
        scraped.devices.receive(report, attempt, scraped.now_seconds)
        for rank in (0, 1):
            scraped.receive(rank=rank, seq=attempt, comm_window=A_WINDOW)
    assert len(scraped.samples()) == series
