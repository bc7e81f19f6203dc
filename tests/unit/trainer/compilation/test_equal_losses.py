"""One process, two processes, eager and compiled train alike, from identical first weights."""

import pytest

from kopeck_trainer.compilation.numerics import LOSS_TOLERANCE, NORM_TOLERANCE
from tests.unit.trainer.local_workers import LocalJob
from tests.unit.trainer.recorded_steps import run_recorded

STEPS = 50


def test_fifty_steps_are_the_same_in_every_mode_and_number_of_processes(job: LocalJob) -> None:
    trainings = {}
    for attempt, (mode, workers) in enumerate(
        [("off", 1), ("off", 2), ("default", 1), ("default", 2)]
    ):
        trainings[mode, workers] = run_recorded(
            job,
            workers=workers,
            attempt=attempt,
            steps=STEPS,
            compile={"mode": mode},
            checkpoint=None,
        )
        end = job.workers[0].termination()
        assert (end["compileMode"], end["samples"]) == (mode, STEPS * 8)
    expected = trainings["off", 1]
    losses = pytest.approx([each.loss for each in expected], rel=LOSS_TOLERANCE)
    norms = pytest.approx([each.gradient_norm for each in expected], rel=NORM_TOLERANCE)
    assert [each.step for each in expected] == list(range(1, STEPS + 1))
    for name, steps in trainings.items():
        assert [each.loss for each in steps] == losses, name
        assert [each.gradient_norm for each in steps] == norms, name
        assert [each.samples for each in steps] == [each.samples for each in expected], name
