"""What a rank reads of its data set."""

import torch

from kopeck_trainer.batches import Batches
from kopeck_trainer.phases import PhaseClock
from kopeck_trainer.reading import Reader
from kopeck_trainer.step_split import StepSplit
from kopeck_trainer.task import TrainingTask
from kopeck_trainer.timeline import HostTimeline


class Counted:
    """A data set that remembers what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        self.asked.append(index)
        return torch.tensor([index])


def test_a_micro_batch_that_was_looked_at_ahead_is_not_read_again() -> None:
    dataset = Counted()
    task = TrainingTask(
        model=torch.nn.Identity,
        loss=lambda output, _: (output.sum(), 1),
        dataset=dataset,
        optimizer=lambda _: torch.optim.SGD([torch.zeros(1)], lr=0.1),
        tokens=lambda batch: batch.numel(),
    )
    reader = Reader(task=task, seed=0, used_samples=64, padding=None)
    batches = Batches(
        reader=reader,
        source=reader,
        micro_batch=2,
        per_step=2,
        rank=0,
        ranks=1,
        device=torch.device("cpu"),
        split=StepSplit(PhaseClock("startup"), HostTimeline()),
    )
    ahead = batches.first_of_length(0, None)
    again = batches.first_of_length(0, None)
    first, second = batches.of_step(0)
    assert batches.tokens == 4  # of the step alone, not of what was looked at ahead
    assert torch.equal(ahead, first)
    assert torch.equal(again, first)
    assert len(second) == 2
    assert len(dataset.asked) == len(set(dataset.asked)) == 4
