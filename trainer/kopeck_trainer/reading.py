"""Micro-batches as they come from the data, still in the host's memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch.utils.data import default_collate

from kopeck_trainer.padding import Padding
from kopeck_trainer.permutation import sample_id
from kopeck_trainer.task import TrainingTask


class Source(Protocol):
    """Where a rank's micro-batches come from, by positions in the order of the permutation."""

    def samples(self, positions: range, /) -> list[Any]:
        """Of the first micro-batch, which is looked at before its step."""

    def batch(self, positions: range, /) -> Any:
        """One made of the samples at `positions`."""


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Reads them when asked, in this process."""

    task: TrainingTask
    seed: int
    used_samples: int
    """Of each epoch."""
    padding: Padding | None
    """None: samples stay as they are."""

    def samples(self, positions: range) -> list[Any]:
        dataset = self.task.dataset
        length, used = len(dataset), self.used_samples
        return [dataset[sample_id(each, length, self.seed, used=used)] for each in positions]

    def batch(self, positions: range) -> Any:
        return self.padded_batch(self.samples(positions))

    def padded_batch(self, samples: Sequence[Any], length: int | None = None) -> Any:
        """Made of `samples`, padded or cut to `length`; None: to what holds the longest."""
        if self.padding and length:
            samples = self.padding.resized(samples, length)
        elif self.padding:
            samples = self.padding.pad(samples)
        return (self.task.collate or default_collate)(list(samples))
