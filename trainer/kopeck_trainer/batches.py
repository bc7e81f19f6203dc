"""The micro-batches of one step, read in the order of the permutation."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only
from torch.utils.data import default_collate

from kopeck_trainer.permutation import sample_id
from kopeck_trainer.phases import PhaseClock
from kopeck_trainer.schedule import micro_batch_positions
from kopeck_trainer.task import TrainingTask


@dataclass(frozen=True, kw_only=True)
class Batches:
    """What this rank reads. Waiting for it is the clock's `data_wait`."""

    task: TrainingTask
    seed: int
    micro_batch: int
    per_step: int
    """Micro-batches of this rank per optimizer step."""
    rank: int
    ranks: int
    device: torch.device
    clock: PhaseClock

    def of_step(self, consumed: int) -> Iterator[Any]:
        """The micro-batches of the step that begins after `consumed` samples of the job."""
        for index in range(self.per_step):
            with self.clock.during("data_wait"):
                batch = self._read(self._positions(consumed, index))
            yield batch

    def _positions(self, consumed: int, index: int) -> range:
        return micro_batch_positions(
            consumed, self.micro_batch, index=index, rank=self.rank, ranks=self.ranks
        )

    def _read(self, positions: range) -> Any:
        dataset = self.task.dataset
        ids = [sample_id(position, len(dataset), self.seed) for position in positions]
        collate = self.task.collate or default_collate
        batch = collate([dataset[each] for each in ids])
        return tree_map_only(Tensor, self._to_device, batch)

    def _to_device(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device, non_blocking=True)
