"""One optimizer step: micro-batches, one reduction, one scaling of the gradients, one update."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer

from kopeck_trainer.errors import ConfigurationError
from kopeck_trainer.task import TrainingTask
from kopeck_trainer.wishes import Wishes

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule

CLIP_EPSILON = 1e-6
"""Added to the norm before dividing by it, as `torch.nn.utils.clip_grad_norm_` does."""


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Of one step, over all ranks."""

    loss: float
    """Mean over the global batch."""
    stop: bool
    """True if any rank was asked to stop."""
    save: bool
    """True if rank 0 wishes to save."""


@dataclass(frozen=True, kw_only=True)
class OptimizerStep:
    """The sharded model and what one step needs beside it."""

    task: TrainingTask
    model: nn.Module
    """An FSDPModule too."""
    optimizer: Optimizer
    max_grad_norm: float | None
    ranks: int
    device: torch.device
    before_update: Callable[[], None]
    """Called when the gradients are there, before weights and optimizer change."""

    def run(self, batches: Iterable[Any], micro_batches: int, wishes: Wishes) -> Totals:
        """Train on this rank's `micro_batches` batches of the global batch.

        All ranks learn in the same step that one was asked to stop, or wishes to save, through
        the one reduction that also carries loss, count and gradient norm.
        """
        sums = self._accumulate(batches, micro_batches)
        gradients = self._local_gradients()
        local = torch.stack([*sums, self._squares(gradients), *self._wished(wishes)])
        dist.all_reduce(local)
        loss_sum, count, squares, stops, saves = local.unbind()
        count = count.clamp(min=1)
        # FSDP has averaged over the ranks what is to be divided by the count of all of them.
        factor = self._scale(squares, self.ranks / count).float()
        self.before_update()
        torch._foreach_mul_(gradients, factor)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return Totals(
            loss=(loss_sum / count).item(), stop=bool(stops.item()), save=bool(saves.item())
        )

    def _wished(self, wishes: Wishes) -> tuple[Tensor, Tensor]:
        return self._number(wishes.stop.is_set), self._number(wishes.save.is_set)

    def probe(self, batch: Any) -> tuple[float, float]:
        """Mean loss and norm of its gradient, of one batch of each rank. Nothing is updated."""
        sums = self._accumulate([batch], 1)
        local = torch.stack([*sums, squared_norm(self._local_gradients())])
        dist.all_reduce(local)
        self.optimizer.zero_grad()
        loss_sum, count, squares = local.tolist()
        count = max(count, 1)
        return loss_sum / count, math.sqrt(squares) * self.ranks / count

    def _number(self, value: float) -> Tensor:
        return torch.full((), value, dtype=torch.float64, device=self.device)

    def _squares(self, gradients: list[Tensor]) -> Tensor:
        """Sum of the squares of all gradients, as float64; each is sharded, so ranks add up."""
        if self.max_grad_norm is None:
            return self._number(0)
        return squared_norm(gradients)

    def _accumulate(self, batches: Iterable[Any], micro_batches: int) -> tuple[Tensor, Tensor]:
        """Sum and count of the losses, as float64. The gradients are reduced once, by the last."""
        loss_sum, count_sum = self._number(0), self._number(0)
        sharded = cast("FSDPModule", self.model)
        for index, batch in enumerate(batches):
            is_last = index == micro_batches - 1
            sharded.set_requires_gradient_sync(is_last)
            sharded.set_is_last_backward(is_last)
            loss, count = self._loss(batch)
            torch.autograd.backward(loss)
            loss_sum += loss.detach()
            count_sum += count
        return loss_sum, count_sum

    def _loss(self, batch: Any) -> tuple[Tensor, Tensor | int]:
        inputs = batch[0] if isinstance(batch, list | tuple) else batch
        result = self.task.loss(self.model(inputs), batch)
        if not isinstance(result, tuple) or len(result) != 2:
            raise ConfigurationError(
                "spec.entrypoint",
                f"the loss of its task returned a {type(result).__name__}",
                "return the sum of the losses and their count",
            )
        return result

    def _local_gradients(self) -> list[Tensor]:
        """This rank's shards of all gradients."""
        return [
            parameter.grad.to_local()
            for group in self.optimizer.param_groups
            for parameter in group["params"]
            if parameter.grad is not None
        ]

    def _scale(self, squares: Tensor, mean: Tensor) -> Tensor:
        """What makes means of averaged sums, and bounds their norm: one factor for both."""
        if self.max_grad_norm is None:
            return mean
        norm = squares.sqrt() * mean
        return mean * (self.max_grad_norm / (norm + CLIP_EPSILON)).clamp(max=1)


def squared_norm(gradients: list[Tensor]) -> Tensor:
    """Sum of the squares of all gradients, as float64."""
    norms = torch.stack(torch._foreach_norm(gradients))  # noqa: SLF001  torch clips with it
    return norms.double().square().sum()


def prefer_fused(optimizer: Optimizer) -> None:
    """Where the choice was left open, one kernel updates all parameters."""
    if not isinstance(optimizer, torch.optim.Adam | torch.optim.SGD):  # AdamW is an Adam
        return
    for group in optimizer.param_groups:
        if group["fused"] is None and group["foreach"] is None and not group["differentiable"]:
            group["fused"] = True
