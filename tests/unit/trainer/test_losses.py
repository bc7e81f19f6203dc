import pytest
import torch
from torch.nn import functional

from kopeck_trainer.compilation.loss import Loss, with_compilable_loss
from kopeck_trainer.config import TrainConfig
from kopeck_trainer.losses import IGNORED, next_token_loss
from kopeck_trainer.task import TrainingTask
from tests.unit.trainer.builders import toy


def test_the_next_token_loss_is_a_sum_over_the_targets_that_count() -> None:
    logits = torch.randn(2, 3, 7)
    targets = torch.tensor([[1, 6, IGNORED], [0, IGNORED, 2]])
    loss, count = next_token_loss(logits, (None, targets))
    expected = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
    assert count == 4
    assert (loss / count).item() == pytest.approx(expected.item())


def test_a_loss_can_be_compiled_unless_it_is_marked() -> None:
    task = toy.build(TrainConfig())
    assert isinstance(with_compilable_loss(task).loss, Loss)
    marked = TrainingTask(
        model=toy.Toy, loss=next_token_loss, dataset=task.dataset, optimizer=task.optimizer
    )
    assert with_compilable_loss(marked).loss is next_token_loss
