"""One process, two processes, eager and compiled train alike, from identical first weights."""

import pytest

from tests.unit.trainer.local_workers import LocalJob

STEPS = 50


def test_the_loss_after_fifty_steps_is_the_same_in_every_mode_and_number_of_processes(
    job: LocalJob,
) -> None:
    losses = {}
    for attempt, (mode, workers) in enumerate(
        [("off", 1), ("off", 2), ("default", 1), ("default", 2)]
    ):
        config = job.config(steps=STEPS, compile={"mode": mode}, checkpoint=None)
        assert job.run(config, workers=workers, attempt=attempt) == [0] * workers
        end = job.workers[0].termination()
        assert (end["compileMode"], end["samples"]) == (mode, STEPS * 8)
        losses[mode, workers] = end["loss"]
    expected = losses["off", 1]
    assert losses == {key: pytest.approx(expected, rel=1e-3) for key in losses}
