from itertools import cycle, islice
from math import inf, nan
from pathlib import Path

import pytest

from kopeck_trainer.exit_codes import NONFINITE_LOSS
from kopeck_trainer.loss_watch import LossWatch
from tests.unit.trainer.local_workers import LocalJob
from tests.unit.trainer.rank_process import kept_steps, start_rank


@pytest.fixture
def watch() -> LossWatch:
    """After fifty losses between 2.0 and 2.2."""
    watch = LossWatch()
    for loss in islice(cycle([2.0, 2.1, 2.2]), 50):
        assert watch.seen(loss) is None
    return watch


@pytest.mark.parametrize("loss", [nan, inf, -inf])
def test_a_loss_that_is_not_finite_is_counted_and_spoils_nothing(
    watch: LossWatch, loss: float
) -> None:
    assert watch.seen(loss) == f"the loss is {loss}"
    assert watch.seen(2.2) is None
    assert (watch.nonfinite, watch.spikes) == (1, 0)


def test_a_step_that_is_skipped_is_counted_as_well(watch: LossWatch) -> None:
    assert watch.seen(2.1, is_skipped=True) == (
        "the norm of the gradients is not finite, so nothing was updated"
    )
    assert (watch.nonfinite, watch.spikes) == (1, 0)


def test_a_jump_is_a_spike_and_a_hard_batch_is_none(watch: LossWatch) -> None:
    assert watch.seen(2.4) is None
    assert watch.seen(9.0) == "the loss has jumped to 9.0000"
    assert (watch.nonfinite, watch.spikes) == (0, 1)


def test_a_level_that_stays_is_no_spike_for_long(watch: LossWatch) -> None:
    assert sum(watch.seen(9.0) is not None for _ in range(50)) < 10
    assert watch.seen(9.0) is None


def test_the_first_losses_are_compared_with_nothing() -> None:
    watch = LossWatch()
    assert [watch.seen(loss) for loss in (0.1, 50.0, 0.1, 50.0)] == [None] * 4


def test_a_constant_loss_may_fall_and_rise_a_little() -> None:
    watch = LossWatch()
    assert all(watch.seen(1.0) is None for _ in range(20))
    assert watch.seen(0.5) is None
    assert watch.seen(1.05) is None


def test_training_goes_on_and_tells(tmp_path: Path) -> None:
    rank = start_rank(tmp_path, steps=6, entrypoint="toy:build_diverging")
    assert rank.exit_code() == 0, rank.output
    assert (rank.report["nonfinite_losses"], rank.report["loss_spikes"]) == (4, 0)
    assert "loss" not in rank.report
    assert "step 3: the loss is nan" in rank.output


@pytest.mark.parametrize("in_background", [False, True])
@pytest.mark.parametrize(
    ("builder", "reason"),
    [("diverging", "the loss of step 3 is nan"), ("exploding", "the weights after step 3 are not")],
)
def test_training_that_is_to_fail_leaves_with_its_last_good_step_saved(
    tmp_path: Path, builder: str, reason: str, *, in_background: bool
) -> None:
    rank = start_rank(
        tmp_path,
        steps=3,  # the faulty one is due by its number, and the last
        entrypoint=f"toy:build_{builder}",
        onNonfiniteLoss="fail",
        checkpoint={"path": str(tmp_path), "everySteps": 1, "async": in_background},
    )
    assert rank.exit_code() == NONFINITE_LOSS, rank.output
    assert rank.reason.startswith(reason)
    assert kept_steps(tmp_path) == [1, 2]


def test_all_ranks_leave_after_the_step_in_which_one_of_them_diverged(job: LocalJob) -> None:
    every_step = {"path": str(job.folder / "checkpoints"), "everySteps": 1}
    config = job.config(
        entrypoint="toy:build_diverging", onNonfiniteLoss="fail", checkpoint=every_step
    )
    assert job.run(config, workers=2) == [NONFINITE_LOSS] * 2, job.workers[0].output
    for worker in job.workers:
        end = worker.termination()
        assert end["exitClass"] == "nonfinite-loss"
        assert end["message"] == (
            "the loss of step 2 is nan, and spec.training.onNonfiniteLoss is fail"
        )
        assert (end["step"], end["checkpointStep"], end["nonfiniteLosses"]) == (2, 1, 1)
    assert job.run(job.config(checkpoint=every_step), attempt=1) == [0], job.workers[0].output
    assert "resumed after step 1, 8 samples" in job.workers[0].output
