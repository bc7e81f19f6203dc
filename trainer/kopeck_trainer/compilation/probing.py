"""One forward and backward that leaves the training as it was."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from kopeck_trainer.agreement import gathered
from kopeck_trainer.compilation.numerics import Probe
from kopeck_trainer.optimizer_step import OptimizerStep


@dataclass(frozen=True, kw_only=True)
class Prober:
    """Every probe sees the same random numbers, buffers and weights."""

    step: OptimizerStep

    def probe(self, batch: Any) -> Probe:
        """Of one batch of each rank."""
        device = self.step.device
        devices = [device] if device.type == "cuda" else []
        with torch.random.fork_rng(devices), buffers_kept(self.step.model):
            before = _random_state(device)
            loss, gradient_norm = self.step.probe(batch)
            drew = not torch.equal(before, _random_state(device))
        return Probe(loss=loss, gradient_norm=gradient_norm, is_random=any(gathered(drew)))


@contextmanager
def buffers_kept(model: nn.Module) -> Iterator[None]:
    """Such as the running statistics of batch normalisation."""
    before = [(buffer, buffer.clone()) for buffer in model.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in before:
                buffer.copy_(value)


def _random_state(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()
