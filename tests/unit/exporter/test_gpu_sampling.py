"""What is published of a GPU is true, or absent."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat
from threading import Thread
from typing import Any

import pytest

from kopeck_exporter.device import DeviceError, Reason
from kopeck_exporter.errors import ErrorCounts, Fault
from kopeck_exporter.gpu_sampling import HUNG_SECONDS, GpuSampling
from tests.gpus import BUSY, CONDITION, THROTTLED, Hang, Reading, ReplayGpu, always

NO_READINGS = [9.2e18, float("nan"), float("inf"), -1.0]
RATIOS = [name for name in BUSY if name.endswith("_ratio")]
RATES = [name for name in BUSY if not name.endswith("_ratio")]


@dataclass
class Sampled:
    """A GPU's readings on a clock that the test sets."""

    gpu: ReplayGpu
    now_seconds: float = 100.0
    errors: ErrorCounts = field(default_factory=ErrorCounts)

    def __post_init__(self) -> None:
        self.sampling = GpuSampling(self.gpu, self.errors, lambda: self.now_seconds)

    def rounds(self, count: int, *, seconds: float = 1.0) -> None:
        for _ in range(count):
            self.sampling.take_round()
            self.now_seconds += seconds

    def known(self) -> dict[str, Any]:
        known = self.sampling.known()
        assert known is not None
        return known

    def counted(self) -> dict[Fault, int]:
        return dict(self.errors.by_fault())


def sampled(**readings: Any) -> Sampled:
    return Sampled(ReplayGpu(**readings))


def test_a_healthy_gpu_is_known_in_full_after_the_second_sample() -> None:
    gpu = sampled()
    gpu.rounds(1)
    assert not gpu.known().keys() & BUSY.keys()
    gpu.rounds(10)
    known = gpu.known()
    assert {name: known[name] for name in RATIOS} == {name: BUSY[name] for name in RATIOS}
    assert {name: known[name] for name in CONDITION} == CONDITION
    assert known["throttled_seconds"].keys() == THROTTLED.keys()
    assert gpu.counted() == {}


def test_activity_is_asked_only_of_two_samples_a_tenth_of_a_second_apart() -> None:
    """NVML answers a shorter interval with success, and with zeros."""
    gpu = sampled(activities=always(dict.fromkeys(BUSY, 0.0)))
    gpu.rounds(2, seconds=0.05)
    gpu.sampling._groups[0].due_at = 0.0  # as if a round had come early
    gpu.rounds(1, seconds=0.05)
    assert not gpu.known().keys() & BUSY.keys()


@pytest.mark.parametrize("wrong", NO_READINGS, ids=str)
@pytest.mark.parametrize("name", BUSY)
def test_an_activity_that_cannot_be_true_is_absent_and_counted_and_the_rest_stays(
    name: str, wrong: float
) -> None:
    gpu = sampled(activities=always({**BUSY, name: wrong}))
    gpu.rounds(2)
    known = gpu.known()
    link, _, way = name.partition("_")
    assert name not in known
    assert way not in known.get(f"{link}_bytes", {})
    assert len(known.keys() & set(RATIOS)) == len(set(RATIOS) - {name})
    assert gpu.counted() == {Fault.GPM_IMPLAUSIBLE: 1}


@pytest.mark.parametrize("wrong", NO_READINGS, ids=str)
@pytest.mark.parametrize("name", CONDITION)
def test_a_condition_that_cannot_be_true_is_absent_and_counted_and_the_rest_stays(
    name: str, wrong: float
) -> None:
    gpu = sampled(conditions=always({**CONDITION, name: wrong}))
    gpu.rounds(1)
    assert gpu.known().keys() & CONDITION.keys() == CONDITION.keys() - {name}
    assert gpu.counted() == {Fault.NVML_IMPLAUSIBLE: 1}


@pytest.mark.parametrize("wrong", NO_READINGS, ids=str)
def test_throttling_that_cannot_be_true_is_absent_from_the_first_reading_on(wrong: float) -> None:
    gpu = sampled(throttling=always({**THROTTLED, "hw_thermal": wrong}))
    gpu.rounds(11)
    assert gpu.known()["throttled_seconds"].keys() == THROTTLED.keys() - {"hw_thermal"}
    assert gpu.counted()[Fault.NVML_IMPLAUSIBLE] >= 2


@pytest.mark.parametrize("wrong", NO_READINGS, ids=str)
def test_an_energy_that_cannot_be_true_is_absent(wrong: float) -> None:
    gpu = sampled(energies=repeat(wrong))
    gpu.rounds(21)
    assert "energy_joules" not in gpu.known()
    assert gpu.counted()[Fault.NVML_IMPLAUSIBLE] >= 2


def test_a_ratio_a_little_above_one_is_one_and_a_percentage_is_none() -> None:
    gpu = sampled(activities=always({"sm_utilization_ratio": 1.004, "tensor_active_ratio": 97.0}))
    gpu.rounds(2)
    known = gpu.known()
    assert known["sm_utilization_ratio"] == 1.0
    assert "tensor_active_ratio" not in known


def growing(*seconds: float) -> Iterator[Reading]:
    return iter([{"sw_thermal": each} for each in seconds])


def test_throttling_counts_from_the_first_reading_of_this_process() -> None:
    gpu = sampled(throttling=growing(5e6, 5e6 + 1.5, 5e6 + 3.5))
    gpu.rounds(11)
    assert gpu.known()["throttled_seconds"] == {"sw_thermal": 3.5}


def test_a_sentinel_between_true_readings_is_absent_once_and_counts_nothing() -> None:
    gpu = sampled(throttling=growing(10.0, 11.0, 9.2e9, 12.0, 13.0))
    gpu.rounds(11)
    assert "throttled_seconds" not in gpu.known()
    gpu.rounds(10)
    assert gpu.known()["throttled_seconds"] == {"sw_thermal": 3.0}


def test_more_throttling_than_time_has_passed_is_no_reading() -> None:
    gpu = sampled(throttling=growing(10.0, 60.0, 61.0))
    gpu.rounds(6)
    assert "throttled_seconds" not in gpu.known()
    gpu.rounds(5)
    assert gpu.known()["throttled_seconds"] == {"sw_thermal": 1.0}


def test_a_counter_that_starts_anew_takes_nothing_back() -> None:
    gpu = sampled(energies=iter([8000.0, 9000.0, 10.0, 510.0]))
    gpu.rounds(31)
    assert gpu.known()["energy_joules"] == 1500.0
    assert gpu.counted() == {}


def test_bytes_are_rates_times_the_time_between_samples() -> None:
    gpu = sampled(activities=always({"nvlink_received": 1e9, "nvlink_sent": 2e9}))
    gpu.rounds(1)
    gpu.rounds(4, seconds=2.5)
    assert gpu.known()["nvlink_bytes"] == {"received": 8.5e9, "sent": 17e9}
    assert "pcie_bytes" not in gpu.known()


def test_before_hopper_activity_is_absent_and_no_error() -> None:
    gpu = sampled(has_activity=False)
    gpu.rounds(11)
    assert gpu.gpu.samples == 0
    assert not gpu.known().keys() & (BUSY.keys() | {"nvlink_bytes", "pcie_bytes"})
    assert gpu.known()["gpu_utilization_ratio"] == 1.0
    assert gpu.counted() == {}


def test_a_mig_instance_has_only_what_is_its_own() -> None:
    gpu = sampled(
        uuid="MIG-1",
        activities=always({name: BUSY[name] for name in RATIOS}),
        conditions=always({"memory_used_bytes": 5e9}),
        throttling=always({}),
        energies=repeat(None),
    )
    gpu.rounds(11)
    assert gpu.known().keys() == {*RATIOS, "memory_used_bytes"}
    assert gpu.counted() == {}


def test_activity_that_the_driver_forbids_is_asked_for_once_and_named() -> None:
    forbidden = DeviceError(Reason.NO_PERMISSION)
    gpu = sampled(activities=always(forbidden))
    gpu.rounds(11)
    assert not gpu.known().keys() & BUSY.keys()
    assert gpu.known()["power_watts"] == 693.0
    assert gpu.counted() == {Fault.GPM_NO_PERMISSION: 1}


@pytest.mark.parametrize("call", ["activities", "conditions", "throttling", "energies"])
def test_a_call_that_fails_takes_its_readings_with_it_until_it_succeeds(call: str) -> None:
    good = {"activities": BUSY, "conditions": CONDITION, "throttling": THROTTLED, "energies": 1e3}
    failing = chain(repeat(DeviceError(Reason.UNKNOWN_ERROR), 2), repeat(good[call]))
    gpu = sampled(**{call: failing})
    gpu.rounds(2)
    without = gpu.known().keys()
    gpu.rounds(20)
    assert gpu.known().keys() > without
    assert sum(gpu.counted().values()) == 2


@pytest.mark.parametrize(
    "lost",
    [
        {"conditions": always(DeviceError(Reason.GPU_LOST))},
        {"conditions": always({**CONDITION, "power_watts": Reason.GPU_LOST})},
        {"activities": always(DeviceError(Reason.GPU_LOST))},
        {"throttling": always(DeviceError(Reason.GPU_LOST))},
    ],
)
def test_a_gpu_off_the_bus_is_absent_counted_once_and_left_alone(lost: dict[str, Any]) -> None:
    gpu = sampled(**lost)
    gpu.rounds(2)
    assert gpu.sampling.known() is None
    assert gpu.counted() == {Fault.NVML_GPU_LOST: 1}
    gpu.sampling.run()  # returns: there is nothing more to ask


def test_a_bug_in_reading_leaves_nothing_behind() -> None:
    gpu = sampled(conditions=chain([CONDITION], repeat({"unheard_of": 1.0})))
    gpu.rounds(1)
    with pytest.raises(KeyError):
        gpu.sampling.run()
    assert gpu.sampling.known() is None


@pytest.mark.parametrize("call", ["activities", "conditions", "throttling"])
def test_while_a_call_hangs_the_gpu_is_absent_and_the_hang_counted_once(call: str) -> None:
    hang = Hang()
    gpu = sampled(**{call: chain([hang], always(CONDITION if call == "conditions" else {}))})
    gpu.sampling.take_round() if call == "activities" else None
    gpu.now_seconds += 1.0
    thread = Thread(target=gpu.sampling.take_round)
    thread.start()
    assert hang.began.wait(30)
    assert gpu.sampling.known() is not None
    gpu.now_seconds += HUNG_SECONDS + 1
    assert gpu.sampling.known() is None
    assert gpu.sampling.known() is None
    assert gpu.counted() == {Fault.NVML_HUNG: 1}
    hang.ended.set()
    thread.join()
    assert gpu.sampling.known() is not None


def test_what_a_slow_driver_told_before_it_was_reset_is_not_shown_again() -> None:
    gpu = sampled(conditions=chain([CONDITION], repeat({})))
    gpu.rounds(2)
    assert not gpu.known().keys() & CONDITION.keys()
