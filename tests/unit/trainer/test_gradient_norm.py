"""The norm that is taken while gradients are reduced is that of the gradients."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from kopeck_trainer.gradient_norm import squared_norm
from kopeck_trainer.task import TrainingTask
from kopeck_trainer.working_weights import local, working_weights
from tests.unit.trainer.on_ranks import on_ranks
from tests.unit.trainer.small_trainings import TRAINING, sharded, with_sharding


class Uneven(nn.Module):
    """No size can be divided by the ranks, and one weight is never used.

    Layers that are used in two rounds are reduced in two parts.
    """

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds
        self.layers = nn.ModuleList(nn.Linear(5, 5) for _ in range(3))
        self.unused = nn.Linear(7, 3)
        self.last = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        for layer in [*self.layers] * self.rounds:
            x = layer(x).sin()
        result: Tensor = self.last(x)
        return result


def an_uneven_task(rounds: int) -> TrainingTask:
    return TrainingTask(
        model=partial(Uneven, rounds),
        loss=lambda *_: (torch.zeros(()), 1),
        dataset=[],
        optimizer=torch.optim.AdamW,
    )


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize(("ranks", "strategy"), [(2, "full"), (4, "hybrid"), (2, "replicate")])
def test_the_reduced_norm_is_that_of_the_last_steps_gradients(
    tmp_path: Path, ranks: int, strategy: str, rounds: int
) -> None:
    for found in on_ranks(ranks, _norms, tmp_path, strategy, rounds):
        for reduced, expected in found:
            assert reduced == pytest.approx(expected, rel=1e-6)
            assert expected > 0


def _norms(strategy: str, rounds: int) -> list[tuple[float, float]]:
    """Of a few steps: as reduced, and of what the parameters have."""
    training = replace(with_sharding(TRAINING, strategy), precision="fp32")
    model = sharded(an_uneven_task(rounds), training)
    weights = working_weights(model, torch.float32, clips=True)
    found = []
    for step in range(3):
        for index in range(2):
            with weights.micro_batch(index, 2):
                x = torch.full((2, 5), float(step + index + torch.distributed.get_rank() + 1))
                torch.autograd.backward(model(x).sum())
        gradients = [local(each.grad) for each in model.parameters() if each.grad is not None]
        found.append((weights.squared_norm(gradients).item(), squared_norm(gradients).item()))
        model.zero_grad()
    return found
