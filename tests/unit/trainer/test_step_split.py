"""Where the time of steps goes, on a device that is behind its host, and on the host itself."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kopeck_exporter.names import PHASES, STEP_PARTS
from kopeck_trainer.phases import PhaseClock
from kopeck_trainer.step_split import STEPS_LATE, StepSplit
from tests.unit.trainer.rank_process import start_rank


@dataclass
class Device:
    """Does the work that it is given in order, beside a host whose time the test passes."""

    lags: bool = True
    host_seconds: float = 100.0
    done_at_seconds: float = 0.0

    def work(self, seconds: float) -> None:
        self.done_at_seconds = max(self.done_at_seconds, self.host_seconds) + seconds

    def mark(self) -> "MarkOfDevice":
        return MarkOfDevice(self, max(self.done_at_seconds, self.host_seconds))

    def now(self) -> float:
        return self.host_seconds


@dataclass
class MarkOfDevice:
    device: Device
    at_seconds: float
    is_past_asked: int = 0

    @property
    def is_past(self) -> bool:
        self.is_past_asked += 1
        return self.device.host_seconds >= self.at_seconds

    def seconds_since(self, earlier: "MarkOfDevice") -> float:
        assert self.device.host_seconds >= self.at_seconds, "nobody may wait for the device"
        return self.at_seconds - earlier.at_seconds


@dataclass
class Training:
    """Steps of one micro-batch, or more, on such a device."""

    device: Device = field(default_factory=Device)
    phase: str = "compute"
    clock: PhaseClock = field(init=False)
    split: StepSplit = field(init=False)

    def __post_init__(self) -> None:
        self.clock = PhaseClock(self.phase, now=self.device.now)
        self.split = StepSplit(self.clock, self.device)
        self.split.begin()

    def pass_time(self, seconds: float) -> None:
        self.device.host_seconds += seconds

    def step(
        self,
        reads: list[float],
        backward: float = 4.0,
        update: float = 1.0,
        copy: float = 0.0,
        between: float = 0.0,
    ) -> None:
        """In seconds: the host's for reads, copy and between steps, else the device's."""
        for read in reads:
            with self.split.waiting("data_wait"):
                self.pass_time(read)
            self.device.work(backward)
        self.split.computed()
        with self.split.waiting("checkpoint"):
            self.pass_time(copy)
        self.device.work(update)
        self.split.ended()
        self.pass_time(between)

    def await_device(self) -> None:
        self.pass_time(max(0.0, self.device.done_at_seconds - self.device.host_seconds))

    def finish(self) -> dict[str, float]:
        """Seconds by part, of those that have any."""
        self.await_device()
        self.split.finish()
        return {part: seconds for part, seconds in self.split.seconds.items() if seconds}


def test_a_read_that_the_device_hides_costs_it_nothing() -> None:
    training = Training()
    for _ in range(4):
        training.step(reads=[3.0])  # of the 5 s that a step takes
    assert training.finish() == {"forward_backward": 16, "optimizer": 4, "data_wait": 3}
    phases = training.clock.seconds()
    assert (phases["data_wait"], phases["compute"]) == (3, 20)


def test_of_a_read_that_is_longer_than_the_device_works_only_the_rest_counts() -> None:
    training = Training()
    for _ in range(4):
        training.step(reads=[7.0])
    assert training.finish() == {
        "forward_backward": 16,
        "optimizer": 4,
        "data_wait": 7 + 3 * (7 - 5),
    }


def test_gaps_between_micro_batches_are_no_part_of_the_backward() -> None:
    training = Training()
    training.step(reads=[1.0, 6.0, 2.0])
    assert training.finish() == {"forward_backward": 12, "optimizer": 1, "data_wait": 1 + 2}


def test_a_device_that_waits_for_the_copy_of_a_checkpoint_waits_for_no_optimizer() -> None:
    training = Training()
    training.step(reads=[0.0], copy=10.0)
    assert training.finish() == {"forward_backward": 4, "optimizer": 1, "checkpoint": 6}
    assert training.clock.seconds()["checkpoint"] == 6


def test_what_a_slow_host_takes_between_steps_is_other() -> None:
    training = Training()
    training.step(reads=[0.0], between=9.0)
    training.step(reads=[0.0])
    assert training.finish() == {"forward_backward": 8, "optimizer": 2, "other": 4}


def test_what_comes_between_steps_that_begin_anew_is_no_part_of_them() -> None:
    training = Training()
    training.step(reads=[0.0], between=9.0)
    training.split.begin()
    training.step(reads=[0.0])
    assert training.finish() == {"forward_backward": 8, "optimizer": 2}


def test_steps_of_the_warm_up_are_not_counted_but_their_waits_are_known() -> None:
    training = Training(phase="warmup")
    training.step(reads=[3.0])
    assert training.finish() == {}
    assert training.clock.seconds()["data_wait"] == 3
    training.clock.switch("compute")
    training.step(reads=[3.0])
    assert training.finish() == {"forward_backward": 4, "optimizer": 1, "data_wait": 3}


def test_marks_are_read_two_steps_late_and_nobody_waits_for_the_device() -> None:
    training = Training()
    for _ in range(STEPS_LATE + 1):
        training.step(reads=[0.0])
    assert set(training.split.seconds.values()) == {0.0}  # the device is at its first step
    training.await_device()
    training.step(reads=[0.0])
    assert training.split.seconds["forward_backward"] == 2 * 4


def test_the_host_has_no_gap_to_hide_a_wait_in() -> None:
    training = Training(Device(lags=False))
    with training.split.waiting("data_wait"):
        training.pass_time(3)
        assert training.clock.seconds()["data_wait"] == 3  # while it still waits
    training.pass_time(4)
    training.split.computed()
    training.pass_time(1)
    training.split.ended()
    assert training.finish() == {"forward_backward": 4, "optimizer": 1, "data_wait": 3}


durations = st.floats(0, 10, allow_nan=False)
steps = st.lists(
    st.fixed_dictionaries(
        {
            "reads": st.lists(durations, min_size=1, max_size=3),
            "backward": durations,
            "update": durations,
            "copy": durations,
            "between": durations,
        }
    ),
    min_size=1,
    max_size=8,
)


@given(steps)
def test_parts_add_up_to_the_steps_and_phases_to_the_wall_time(all_steps: list[Any]) -> None:
    training = Training()
    for step in all_steps:
        training.step(**step)
    parts = training.finish()
    began_at = Device.host_seconds
    last_end = training.split._begins.seconds_since(MarkOfDevice(training.device, began_at))  # type: ignore[arg-type]
    assert sum(parts.values()) == pytest.approx(last_end)
    wall_seconds = training.device.host_seconds - began_at
    phases = training.clock.seconds()
    assert list(phases) == list(PHASES)
    assert sum(phases.values()) == pytest.approx(wall_seconds)
    assert training.clock.seconds_without("compile") == pytest.approx(wall_seconds)
    assert all(seconds >= 0 for seconds in phases.values())


def test_a_rank_on_a_cpu_reports_the_parts_of_its_steps(tmp_path: Path) -> None:
    rank = start_rank(tmp_path, steps=20)
    assert rank.exit_code() == 0, rank.output
    parts = rank.report["step_part_seconds"]
    assert list(parts) == list(STEP_PARTS)
    assert min(parts["forward_backward"], parts["optimizer"], parts["data_wait"]) > 0
    steps_seconds = rank.report["step_seconds_sum"]
    assert sum(parts.values()) <= steps_seconds * 1.01
