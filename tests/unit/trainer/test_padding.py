import pytest
import torch

from kopeck_trainer.config import DataConfig, TrainingConfig
from kopeck_trainer.errors import ConfigurationError
from kopeck_trainer.padding import Padding, length_of, resized
from kopeck_trainer.permutation import sample_id
from kopeck_trainer.schedule import used_samples

DROPPING = TrainingConfig(
    global_batch_size=16, micro_batch_size=2, steps=4, data=DataConfig(drop_last=True)
)


def test_inputs_are_padded_with_0_and_targets_with_what_cross_entropy_ignores() -> None:
    tokens, targets, weights, label = resized(
        (torch.tensor([1, 2]), torch.tensor([2, 3]), torch.tensor([[1.0], [1.0]]), 7), 3
    )
    assert tokens.tolist() == [1, 2, 0]
    assert targets.tolist() == [2, 3, -100]
    assert weights.tolist() == [[1.0], [1.0], [0.0]]
    assert label == 7


def test_all_samples_get_the_smallest_length_that_holds_the_longest() -> None:
    padding = Padding(lengths=(4, 8, 16), resize=resized)
    samples = [torch.ones(3), torch.ones(5)]
    assert [length_of(each) for each in padding.pad(samples)] == [8, 8]
    assert [length_of(each) for each in padding.resized(samples, 4)] == [4, 4]


def test_samples_without_a_length_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="the samples have no length"):
        length_of((torch.tensor(1), "text"))


def test_dropping_the_last_batch_leaves_out_other_samples_in_each_epoch() -> None:
    used = used_samples(DROPPING, 40)
    assert used == 32
    epochs = [
        {sample_id(epoch * used + each, 40, seed=0, used=used) for each in range(used)}
        for epoch in range(2)
    ]
    assert [len(epoch) for epoch in epochs] == [32, 32]
    assert epochs[0] != epochs[1]


def test_data_that_is_less_than_a_batch_cannot_be_dropped() -> None:
    with pytest.raises(ConfigurationError, match="use a globalBatchSize of at most 15"):
        used_samples(DROPPING, 15)
