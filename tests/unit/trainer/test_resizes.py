"""A checkpoint is the same whether one rank wrote it, without FSDP, or several with it."""

import pytest

from kopeck_trainer.compilation.numerics import LOSS_TOLERANCE, NORM_TOLERANCE
from tests.unit.trainer.local_workers import LocalJob
from tests.unit.trainer.recorded_steps import run_recorded

GLOBAL_BATCH = 12  # for one, two and three ranks; of 40 samples, so that a step spans two epochs
STEPS_OF_STAGE = 4
MAX_GRAD_NORM = 6.0  # some steps are clipped, some are not


def test_two_workers_then_one_then_three_take_the_steps_of_a_training_without_resizes(
    job: LocalJob,
) -> None:
    common = {
        "globalBatchSize": GLOBAL_BATCH,
        "precision": "bf16",
        "maxGradNorm": MAX_GRAD_NORM,
    }
    resized = []
    for stage, workers in enumerate([2, 1, 3]):
        end = STEPS_OF_STAGE * (stage + 1)
        resized += run_recorded(job, workers=workers, attempt=stage, steps=end, **common)
        if stage:
            begin = f"resumed after step {STEPS_OF_STAGE * stage}, "
            assert begin in job.workers[0].output
    steps = 3 * STEPS_OF_STAGE
    whole = run_recorded(job, workers=1, attempt=3, steps=steps, checkpoint=None, **common)

    assert [each.step for each in resized] == list(range(1, steps + 1))
    assert [each.samples for each in resized] == [each.samples for each in whole]
    assert all(len(each.samples) == GLOBAL_BATCH for each in whole)
    losses = [each.loss for each in whole]
    assert [each.loss for each in resized] == pytest.approx(losses, rel=LOSS_TOLERANCE)
    norms = [each.gradient_norm for each in whole]
    assert [each.gradient_norm for each in resized] == pytest.approx(norms, rel=NORM_TOLERANCE)
    assert min(norms) < 0.99 * MAX_GRAD_NORM < max(norms)
