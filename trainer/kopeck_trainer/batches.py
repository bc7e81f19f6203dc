"""The micro-batches of one step, read in the order of the permutation."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from kopeck_trainer.reading import Reader, Source
from kopeck_trainer.schedule import micro_batch_positions
from kopeck_trainer.step_split import StepSplit


@dataclass(kw_only=True)
class Batches:
    """What this rank reads. Waiting for it is the steps' `data_wait`."""

    reader: Reader
    source: Source
    """The reader, or what reads ahead with it."""
    micro_batch: int
    per_step: int
    """Micro-batches of this rank per optimizer step."""
    rank: int
    ranks: int
    device: torch.device
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
            if tokens := self.reader.task.tokens:
                self.tokens = (self.tokens or 0) + tokens(batch)
            yield batch

    def first_of_length(self, consumed: int, length: int | None) -> Any:
        """The first micro-batch after `consumed` samples, padded or cut to `length`."""
        positions = self._positions(consumed, 0)
        if positions not in self.seen_ahead:
            self.seen_ahead[positions] = self.source.samples(positions)
        samples = self.seen_ahead[positions]
        return self._on_device(self.reader.padded_batch(samples, length))

    def positions(self, consumed: int, last_sample: int) -> Iterator[range]:
        """Of the micro-batches from `consumed` on, those that `of_step` asks for, in its order.

        The first is among them also where training is complete: it is looked at.
        """
        step_samples = self.per_step * self.ranks * self.micro_batch
        for begin in range(consumed, max(last_sample, consumed + 1), step_samples):
            for index in range(self.per_step):
                yield self._positions(begin, index)

    def _positions(self, consumed: int, index: int) -> range:
        return micro_batch_positions(
            consumed, self.micro_batch, index=index, rank=self.rank, ranks=self.ranks
        )

    def _read(self, positions: range) -> Any:
        samples = self.seen_ahead.pop(positions, None)
        if samples is None:
            return self._on_device(self.source.batch(positions))
        return self._on_device(self.reader.padded_batch(samples))

    def _on_device(self, batch: Any) -> Any:
        return tree_map_only(Tensor, self._to_device, batch)

    def _to_device(self, tensor: Tensor) -> Tensor:
        """Copied while the device computes, for which the host's memory has to be pinned."""
        if self.device.type == "cuda" and not tensor.is_cuda:
            tensor = tensor.pin_memory()
        return tensor.to(self.device, non_blocking=True)
