import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from kopeck_trainer import TrainConfig, TrainingTask
from kopeck_trainer.builder import build_task

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def task(monkeypatch: pytest.MonkeyPatch) -> TrainingTask:
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.delitem(sys.modules, "byte_llama", raising=False)
    parameters: dict[str, Any] = {"dim": 16, "layers": 2, "heads": 2, "sequenceLength": 12}
    return build_task(TrainConfig(entrypoint="byte_llama:build", parameters=parameters))


def test_each_byte_is_to_be_told_from_those_before_it(task: TrainingTask) -> None:
    inputs, targets = task.dataset[7]
    assert torch.equal(inputs[1:], targets[:-1])
    model = task.model()
    changed = inputs.clone()
    changed[6:] = 0
    with torch.no_grad():
        before, after = model(inputs[None]), model(changed[None])
    assert torch.allclose(before[:, :6], after[:, :6], atol=1e-6)
    assert not torch.allclose(before[:, 6:], after[:, 6:], atol=1e-6)


def test_positions_matter(task: TrainingTask) -> None:
    model = task.model()
    in_order = torch.arange(12)[None]
    swapped = in_order[:, [1, 0, *range(2, 12)]]
    with torch.no_grad():
        before, after = model(in_order), model(swapped)
    assert (before - after)[:, -1].abs().max() > 1e-4


def test_the_loss_is_a_sum_and_its_count(task: TrainingTask) -> None:
    batch = (torch.zeros(3, 12), torch.zeros(3, 12, dtype=torch.long))
    loss, count = task.loss(torch.zeros(3, 12, 256), batch)
    assert count == 36
    assert loss.item() == pytest.approx(36 * torch.tensor(256.0).log().item())
