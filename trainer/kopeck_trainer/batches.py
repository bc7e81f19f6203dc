"""The micro-batches of one step, read in the order of the permutation."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only
from torch.utils.data import default_collate

from kopeck_trainer.padding import Padding
from kopeck_trainer.permutation import sample_id
from kopeck_trainer.schedule import micro_batch_positions
from kopeck_trainer.step_split import StepSplit
from kopeck_trainer.task import TrainingTask


@dataclass(kw_only=True)
class Batches:
    """What this rank reads. Waiting for it is the steps' `data_wait`."""

    task: TrainingTask
    seed: int
    micro_batch: int
    per_step: int
    """Micro-batches of this rank per optimizer step."""
    rank: int
    ranks: int
    device: torch.device
    padding: Padding | None
    """None: samples stay as they are."""
    used_samples: int
    """Of each epoch."""
    split: StepSplit
    seen_ahead: dict[range, list[Any]] = field(default_factory=dict)
    """Samples that were looked at before their step, so that none is read twice."""
    tokens: int | None = None
    """In the steps so far; None before the first, and where the task does not count them."""

    def of_step(self, consumed: int) -> Iterator[Any]:
        """The micro-batches of the step that begins after `consumed` samples of the job."""
        for index in range(self.per_step):
            with self.split.waiting("data_wait"):
                batch = self._read(self._positions(consumed, index))
            if self.task.tokens:
                self.tokens = (self.tokens or 0) + self.task.tokens(batch)
            yield batch

    def first_of_length(self, consumed: int, length: int | None) -> Any:
        """The first micro-batch after `consumed` samples, padded or cut to `length`."""
        positions = self._positions(consumed, 0)
        if positions not in self.seen_ahead:
            self.seen_ahead[positions] = self._samples(positions)
        samples = self.seen_ahead[positions]
        if self.padding and length:
            samples = self.padding.resized(samples, length)
        elif self.padding:
            samples = self.padding.pad(samples)
        return self._collated(samples)

    def _positions(self, consumed: int, index: int) -> range:
        return micro_batch_positions(
            consumed, self.micro_batch, index=index, rank=self.rank, ranks=self.ranks
        )

    def _read(self, positions: range) -> Any:
        samples = self.seen_ahead.pop(positions, None) or self._samples(positions)
        return self._collated(self.padding.pad(samples) if self.padding else samples)

    def _samples(self, positions: range) -> list[Any]:
        dataset = self.task.dataset
        length, used = len(dataset), self.used_samples
        return [dataset[sample_id(each, length, self.seed, used=used)] for each in positions]

    def _collated(self, samples: list[Any]) -> Any:
        collate = self.task.collate or default_collate
        batch = collate(samples)
        return tree_map_only(Tensor, self._to_device, batch)

    def _to_device(self, tensor: Tensor) -> Tensor:
        """Copied while the device computes, for which the host's memory has to be pinned."""
        if self.device.type == "cuda" and not tensor.is_cuda:
            tensor = tensor.pin_memory()
        return tensor.to(self.device, non_blocking=True)
