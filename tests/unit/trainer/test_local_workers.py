"""Whole trainings of two workers on this machine, and what becomes of them under faults."""

import json
import os
import signal
from pathlib import Path
from time import monotonic

import pytest

from kopeck_trainer.exit_codes import CHECKPOINTED, CONFIGURATION, PEER_LOST
from tests.unit.trainer.local_workers import END_SECONDS, LocalJob, Worker
from tests.waiting import eventually

ENDLESS = 1_000_000


def committed(job: LocalJob) -> list[str]:
    return sorted(path.name for path in job.checkpoints.glob("step-*"))


def flip_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


def test_two_workers_train_compiled_and_their_loss_falls(job: LocalJob) -> None:
    codes = job.run(job.config(steps=30, compile={"mode": "default"}), workers=2)
    ends = [worker.termination() for worker in job.workers]
    assert codes == [0, 0], job.workers[0].output
    for end in ends:
        assert end["exitClass"] == "completed"
        assert (end["step"], end["samples"], end["checkpointStep"]) == (30, 30 * 8, 30)
        assert (end["compileMode"], end["graphBreaks"], end["recompiles"]) == ("default", 0, 0)
        assert end["compileSeconds"] > 0
        assert end["samplesPerSecond"] > 0
        assert end["stepSeconds"] > 0
        assert end["peakResidentBytes"] > 0
        assert "peakDeviceBytes" not in end
    first_line = next(line for line in job.workers[0].output.splitlines() if "loss" in line)
    assert ends[0]["loss"] == ends[1]["loss"] < float(first_line.split()[3]) / 2
    assert "loss" not in job.workers[1].output
    assert committed(job) == ["step-28.a0", "step-30.a0"]


def test_a_killed_rank_is_named_and_the_next_attempt_goes_on_from_the_last_good_checkpoint(
    job: LocalJob,
) -> None:
    healthy, killed = job.start(job.config(steps=ENDLESS), workers=2)
    job.step_reached(4)
    os.kill(killed.rank_pids[0], signal.SIGKILL)
    assert killed.exit_code() == 137
    assert killed.termination()["firstFailure"] == {
        "rank": 1,
        "exitCode": 137,
        "signal": "SIGKILL",
    }
    assert healthy.exit_code() == PEER_LOST, healthy.output
    assert healthy.termination()["exitClass"] == "peer-lost"

    *_, before, newest = sorted(
        (path for path in job.checkpoints.glob("step-*.a0")),
        key=lambda path: json.loads((path / "manifest.json").read_text())["step"],
    )
    flip_a_byte(next(newest.glob("__0_*")))
    good_step = json.loads((before / "manifest.json").read_text())["step"]
    codes = job.run(job.config(steps=good_step + 2), workers=2, attempt=1)
    assert codes == [0, 0], job.workers[0].output
    assert f"resumed after step {good_step}, {good_step * 8} samples" in job.workers[0].output
    assert f"{newest} is skipped" in job.workers[0].output
    assert job.workers[0].termination()["samples"] == (good_step + 2) * 8


def test_a_worker_imports_torch_and_builds_while_it_waits_for_worker_0(job: LocalJob) -> None:
    first, second = job.start(job.config(entrypoint="toy:build_aloud"), workers=2)
    first.process.send_signal(signal.SIGSTOP)  # before it has started its rank

    def is_built() -> None:
        assert "the task is built" in second.output

    eventually(is_built, seconds=END_SECONDS)
    assert "the task is built" not in first.output
    first.process.send_signal(signal.SIGCONT)
    assert [first.exit_code(), second.exit_code()] == [0, 0], first.output


def test_workers_stopped_at_different_moments_save_the_same_step_and_leave_within_their_grace(
    job: LocalJob,
) -> None:
    job.environ["KOPECK_GRACE_SECONDS"] = str(END_SECONDS)
    config = job.config(entrypoint="held:build", steps=ENDLESS)
    config["parameters"] = {"gate": str(job.folder)}
    config["training"] |= {"data": {"workers": 1}}
    config["training"]["checkpoint"]["everySteps"] = ENDLESS
    first, second = job.start(config, workers=2)
    job.step_reached(3)
    groups = first.rank_pids + second.rank_pids
    asked_at = monotonic()
    first.process.send_signal(signal.SIGSTOP)  # a slow launcher: else all would stop now
    first.process.send_signal(signal.SIGTERM)
    job.step_reached(job.told_step + 1)
    second.process.send_signal(signal.SIGTERM)
    eventually(lambda: exists(job.folder / "held"), seconds=END_SECONDS)
    first.process.send_signal(signal.SIGCONT)
    eventually(lambda: is_stopping(first), seconds=END_SECONDS)
    for worker in (first, second):
        worker.process.send_signal(signal.SIGTERM)  # once more
    (job.folder / "released").touch()
    assert [first.exit_code(), second.exit_code()] == [CHECKPOINTED] * 2, first.output
    assert monotonic() - asked_at < END_SECONDS
    for group in groups:  # of a rank and the processes that read for it
        with pytest.raises(ProcessLookupError):
            os.killpg(group, 0)

    ends = [first.termination(), second.termination()]
    step = ends[0]["step"]
    assert [end["checkpointStep"] for end in ends] == [end["step"] for end in ends] == [step] * 2
    for end in ends:
        assert end["exitClass"] == "checkpointed"
        assert end["message"] == "stopped by SIGTERM after a checkpoint"
        assert "firstFailure" not in end  # such as a rank that had to be killed
    assert committed(job) == [f"step-{step}.a0"]
    shards = job.checkpoints.glob("step-*/__*")
    assert {path.name.split("_")[2] for path in shards} == {"0", "1"}  # the ranks

    assert job.run(job.config(steps=step + 1), workers=1, attempt=1) == [0]
    assert f"resumed after step {step}" in job.workers[0].output
    assert job.workers[0].termination()["samples"] == (step + 1) * 8


def exists(path: Path) -> None:
    assert path.exists()


def is_stopping(worker: Worker) -> None:
    assert "kopeck: stopping: " in worker.output


def test_a_stop_without_checkpoints_is_not_called_a_checkpoint(job: LocalJob) -> None:
    [worker] = job.start(job.config(steps=ENDLESS, checkpoint=None))
    job.step_reached(1)
    worker.process.send_signal(signal.SIGTERM)
    assert worker.exit_code() == 143, worker.output
    assert worker.termination()["exitClass"] == "failed"
    assert "spec.training.checkpoint is unset" in worker.termination()["message"]


def test_what_the_users_code_raises_is_shown_whole_and_named_in_the_message(
    job: LocalJob,
) -> None:
    other, crashed = job.start(job.config(entrypoint="toy:build_crashing"), workers=2)
    assert (crashed.exit_code(), other.exit_code()) == (1, PEER_LOST), other.output
    assert crashed.termination()["message"] == "ValueError: the labels are gone"
    assert 'raise ValueError("the labels are gone")' in crashed.output


def test_a_builder_that_does_not_import_is_a_configuration_error_without_a_traceback(
    job: LocalJob,
) -> None:
    assert job.run(job.config(entrypoint="nowhere:build")) == [CONFIGURATION]
    [worker] = job.workers
    assert worker.termination()["exitClass"] == "configuration"
    assert worker.termination()["message"].startswith("spec.entrypoint: importing nowhere raised")
    assert "Traceback" not in worker.output
