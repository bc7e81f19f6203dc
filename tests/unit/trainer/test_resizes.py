"""A checkpoint is the same whether one rank wrote it, without FSDP, or several with it."""

from tests.unit.trainer.local_workers import LocalJob


def last_loss(job: LocalJob) -> float:
    lines = [line for line in job.workers[0].output.splitlines() if "loss" in line]
    return float(lines[-1].split("loss")[1].split()[0])


def test_one_worker_goes_on_as_two_and_as_one_again(job: LocalJob) -> None:
    whole = job.config(steps=6, precision="bf16", maxGradNorm=0.5, checkpoint=None)
    assert job.run(whole) == [0]
    uninterrupted = last_loss(job)
    for attempt, workers in enumerate([1, 2, 1], start=1):
        part = job.config(steps=2 * attempt, precision="bf16", maxGradNorm=0.5)
        assert job.run(part, workers=workers, attempt=attempt) == [0] * workers
        if attempt > 1:
            assert f"resumed after step {2 * attempt - 2}" in job.workers[0].output
    assert abs(last_loss(job) - uninterrupted) < 0.01 * uninterrupted
