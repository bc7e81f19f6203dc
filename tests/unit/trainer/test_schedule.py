import pytest

from kopeck_trainer.config import TrainingConfig
from kopeck_trainer.errors import ConfigurationError
from kopeck_trainer.schedule import accumulation_steps, samples_to_train


def test_the_global_batch_is_shared_by_ranks_and_micro_batches() -> None:
    assert accumulation_steps(global_batch=288, micro_batch=4, ranks=24) == 3


@pytest.mark.parametrize(("global_batch", "instead"), [(250, 288), (95, 96), (97, 192)])
def test_a_world_size_that_does_not_divide_is_refused_with_a_batch_that_does(
    global_batch: int, instead: int
) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        accumulation_steps(global_batch, micro_batch=4, ranks=24)
    assert str(refusal.value) == (
        f"spec.training.globalBatchSize: {global_batch} is no multiple of "
        f"microBatchSize × ranks (4 × 24); use {instead}"
    )


def test_steps_and_samples_say_the_same_end() -> None:
    by_steps = TrainingConfig(global_batch_size=16, micro_batch_size=4, steps=5)
    by_samples = TrainingConfig(global_batch_size=16, micro_batch_size=4, samples=80)
    assert samples_to_train(by_steps) == samples_to_train(by_samples) == 80


def test_samples_that_end_inside_a_step_are_refused() -> None:
    training = TrainingConfig(global_batch_size=16, micro_batch_size=4, samples=81)
    with pytest.raises(ConfigurationError, match=r"81 is no multiple .* \(16\); use 96"):
        samples_to_train(training)
