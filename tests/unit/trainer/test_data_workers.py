"""Processes that read ahead change nothing but the time that steps wait for data."""

import multiprocessing
import os
import signal
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

from kopeck_trainer.batches import Batches
from kopeck_trainer.compilation.session import Compilation
from kopeck_trainer.data_workers import DataWorkers
from kopeck_trainer.errors import ModeFailedError
from kopeck_trainer.exit_codes import CHECKPOINTED, CONFIGURATION, FAILED, NONFINITE_LOSS
from kopeck_trainer.padding import Padding, resized
from kopeck_trainer.phases import PhaseClock
from kopeck_trainer.reading import Reader, Source
from kopeck_trainer.step_split import StepSplit
from kopeck_trainer.timeline import HostTimeline
from tests.unit.trainer.on_ranks import on_ranks
from tests.unit.trainer.rank_process import RankProcess, kept_steps, start_rank
from tests.unit.trainer.small_trainings import CPU, the_toy
from tests.waiting import eventually

ENDLESS = 1_000_000
GLOBAL_BATCH = 8
PAD_TO = "spec.training.data.padTo"


@dataclass
class Numbers:
    """Samples of their own number, of lengths 1 to 4. Reading one takes a second by `now`."""

    now: Any = field(default_factory=lambda: multiprocessing.get_context("fork").Value("d", 0.0))

    def __len__(self) -> int:
        return 41

    def __getitem__(self, index: int) -> Tensor:
        with self.now.get_lock():
            self.now.value += 1.0
        torch.rand(1)
        return torch.full((1 + index % 4,), index)

    def seconds(self) -> float:
        return float(self.now.value)


def a_reader(data: Numbers) -> Reader:
    task = replace(the_toy(), dataset=data)
    padding = Padding(lengths=(2, 4), resize=resized)
    return Reader(task=task, seed=3, used_samples=40, padding=padding)


def the_batches(
    reader: Reader, source: Source, clock: PhaseClock, rank: int = 0, ranks: int = 1
) -> Batches:
    return Batches(
        reader=reader,
        source=source,
        micro_batch=2,
        per_step=GLOBAL_BATCH // (2 * ranks),
        rank=rank,
        ranks=ranks,
        device=CPU,
        split=StepSplit(clock, HostTimeline()),
    )


def all_batches(rank: int, ranks: int, consumed: int, workers: int) -> list[Any]:
    """What a rank trains on from `consumed` samples to 96, which is in the third epoch."""
    reader = a_reader(Numbers())
    if not workers:
        batches = the_batches(reader, reader, PhaseClock("compute"), rank, ranks)
        return read(batches, consumed)
    with DataWorkers(reader, workers, rank=rank, seed=1) as source:
        batches = the_batches(reader, source, PhaseClock("compute"), rank, ranks)
        source.begin(batches.positions(consumed, 96))
        return read(batches, consumed)


def read(batches: Batches, consumed: int) -> list[Any]:
    batches.first_of_length(consumed, 4)
    steps = range(consumed, 96, GLOBAL_BATCH)
    return [batch.tolist() for step in steps for batch in batches.of_step(step)]


def read_both_ways() -> None:
    for rank, ranks, consumed in [(0, 1, 0), (0, 2, 0), (1, 2, 40)]:
        alone = all_batches(rank, ranks, consumed, 0)
        assert alone == all_batches(rank, ranks, consumed, 3)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    assert all_batches(0, 1, 96, 2) == []  # training is complete, and looks at one more
    assert torch.equal(before, torch.get_rng_state())
    assert multiprocessing.active_children() == []


def test_every_rank_reads_the_same_at_any_number_of_ranks_from_any_sample_on(
    tmp_path: Path,
) -> None:
    on_ranks(1, read_both_ways, tmp_path)


def waited_seconds(workers: int) -> float:
    """For data, in three steps that each begin once nothing is being read any more."""
    data = Numbers()
    reader = a_reader(data)
    clock = PhaseClock("compute", now=data.seconds)
    if not workers:
        train_three_steps(the_batches(reader, reader, clock), lambda: None)
    else:
        with DataWorkers(reader, workers, rank=0, seed=1) as source:
            batches = the_batches(reader, source, clock)
            source.begin(batches.positions(0, 3 * GLOBAL_BATCH))
            train_three_steps(batches, partial(all_are_read, data))
    return clock.seconds()["data_wait"]


def train_three_steps(batches: Batches, compute: Any) -> None:
    batches.first_of_length(0, None)
    for step in range(3):
        compute()
        list(batches.of_step(step * GLOBAL_BATCH))


def all_are_read(data: Numbers) -> None:
    """The step takes as long as reading all data."""

    def check() -> None:
        assert data.seconds() == 3 * GLOBAL_BATCH

    eventually(check)


def both_waits() -> tuple[float, float]:
    return waited_seconds(0), waited_seconds(6)  # two micro-batches each: all of them


def test_what_is_read_while_steps_compute_is_not_waited_for(tmp_path: Path) -> None:
    [(alone, ahead)] = on_ranks(1, both_waits, tmp_path)
    assert alone == 3 * GLOBAL_BATCH - 2  # the first micro-batch was looked at before
    assert ahead == 0


def a_rank(folder: Path, **told: Any) -> RankProcess:
    return start_rank(folder, entrypoint="read_ahead:build", **told)


def is_gone(rank: RankProcess) -> bool:
    """Whether processes have read, and none of them is left."""
    workers = [each.name.removeprefix("worker-") for each in rank.folder.glob("worker-*")]
    return bool(workers) and not any(Path(f"/proc/{each}").exists() for each in workers)


def test_a_loss_is_the_same_to_the_last_bit_also_after_a_resume(tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    own = a_rank(alone, steps=6)
    first = a_rank(tmp_path, steps=3, data={"workers": 2})
    assert (own.exit_code(), first.exit_code()) == (0, 0), first.output
    resumed = a_rank(tmp_path, steps=6, data={"workers": 1}, attempt=1)
    assert resumed.exit_code() == 0, resumed.output
    assert "resumed after step 3" in resumed.output
    assert resumed.report["loss"] == own.report["loss"]
    assert is_gone(first)
    assert is_gone(resumed)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("fault", "padding", "code", "reason"),
    [
        ("ValueError", {}, FAILED, "ValueError: sample 9 is torn"),
        ("OwnError", {}, FAILED, "OwnError: the store has no sample 9"),
        (
            "long",
            {"padTo": [6]},
            CONFIGURATION,
            f"{PAD_TO}: a sample of length 7 is longer than all of [6]; add 7, or cut the samples",
        ),
    ],
)
def test_what_a_read_raises_ends_a_rank_with_the_same_words(
    tmp_path: Path, workers: int, fault: str, padding: dict[str, Any], code: int, reason: str
) -> None:
    rank = a_rank(
        tmp_path, steps=9, parameters={"fault": fault}, data=padding | {"workers": workers}
    )
    assert rank.exit_code() == code, rank.output
    assert rank.reason == reason
    assert rank.report["step"] == 3  # not before it is needed
    assert (", in _fail" in rank.output) == (code == FAILED)  # the place in the user's own code
    assert not workers or is_gone(rank)


def test_a_batch_that_cannot_be_sent_ends_the_rank(tmp_path: Path) -> None:
    rank = a_rank(tmp_path, steps=9, parameters={"fault": "lambda"}, data={"workers": 1})
    assert rank.exit_code() == FAILED, rank.output
    assert "ickle" in rank.reason


def test_a_data_worker_that_is_killed_is_named(tmp_path: Path) -> None:
    rank = a_rank(tmp_path, steps=ENDLESS, parameters={"fault": "SIGKILL"}, data={"workers": 2})
    assert rank.exit_code() == FAILED, rank.output
    workers = [each.name.removeprefix("worker-") for each in rank.folder.glob("worker-*")]
    named = [each for each in workers if f"(process {each})" in rank.reason]
    assert len(named) == 1, rank.reason
    assert rank.reason == (
        f"a data worker of rank 0 (process {named[0]}) was ended by SIGKILL; where memory or"
        " /dev/shm is short, lower spec.training.data.workers"
    )
    assert is_gone(rank)


def test_the_death_of_a_data_worker_is_no_fault_of_a_mode_on_trial() -> None:
    blaming = SimpleNamespace(is_blamed_for=lambda _: True)
    compilation = Compilation.__new__(Compilation)
    compilation.search = cast("Any", blaming)
    compilation._raised(RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed. "))
    with pytest.raises(ModeFailedError):
        compilation._raised(RuntimeError("a kernel cannot run"))


def test_a_stop_that_all_processes_hear_of_saves_the_step_and_leaves_none_behind(
    tmp_path: Path,
) -> None:
    rank = a_rank(tmp_path, steps=ENDLESS, data={"workers": 2})
    rank.step_reached(3)
    for each in rank.folder.glob("worker-*"):
        os.kill(int(each.name.removeprefix("worker-")), signal.SIGTERM)
    rank.process.terminate()
    assert rank.exit_code() == CHECKPOINTED, rank.output
    assert kept_steps(tmp_path)[-1] == rank.report["step"]
    assert is_gone(rank)


def test_a_loss_that_is_to_fail_leaves_no_process_behind(tmp_path: Path) -> None:
    rank = a_rank(
        tmp_path,
        steps=ENDLESS,
        parameters={"diverges": True},
        onNonfiniteLoss="fail",
        data={"workers": 2},
    )
    assert rank.exit_code() == NONFINITE_LOSS, rank.output
    assert is_gone(rank)
