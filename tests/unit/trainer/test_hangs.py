"""Ranks that stand still, in whole trainings of two workers on this machine."""

import os
import signal

import pytest

from kopeck_trainer.exit_codes import HANG
from tests.unit.trainer.local_workers import LocalJob

ENDLESS = 1_000_000


@pytest.fixture
def impatient(job: LocalJob) -> LocalJob:
    job.environ["KOPECK_HANG_SECONDS"] = "3"
    return job


def test_a_rank_that_hangs_ends_the_job_and_all_name_it_and_the_collective(
    impatient: LocalJob,
) -> None:
    codes = impatient.run(impatient.config(entrypoint="toy:build_hanging", steps=9), workers=2)
    assert codes == [HANG, HANG], impatient.workers[0].output
    for worker in impatient.workers:
        told = worker.termination()
        assert told["exitClass"] == "hang"
        assert "no step ended for 3 s: rank 0 waits in gloo:" in told["message"]
        assert "for rank 1 (at toy.py:" in told["message"]
        assert "in hang)" in told["message"]
    assert "Thread 0x" in impatient.workers[1].output  # all stacks
    assert 'rank 0 waits in {"' in impatient.workers[0].output  # the flight recorder


@pytest.mark.parametrize("stopped", [0, 1])
def test_a_rank_that_is_stopped_is_named_by_its_peer(impatient: LocalJob, stopped: int) -> None:
    workers = impatient.start(impatient.config(steps=ENDLESS), workers=2)
    impatient.step_reached(3)
    os.kill(workers[stopped].rank_pids[0], signal.SIGSTOP)
    waiting = workers[1 - stopped]
    assert waiting.exit_code() == HANG, waiting.output
    message = waiting.termination()["message"]
    assert f"rank {1 - stopped} waits in gloo:" in message
    assert f"for rank {stopped} (does not answer)" in message
