"""One optimizer step: micro-batches, one reduction, one scaling of the gradients, one update."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from kopeck_trainer.errors import ConfigurationError
from kopeck_trainer.step_split import StepSplit
from kopeck_trainer.step_totals import PendingTotals
from kopeck_trainer.task import TrainingTask
from kopeck_trainer.update import Update
from kopeck_trainer.wishes import Wishes
from kopeck_trainer.working_weights import WorkingWeights

CLIP_EPSILON = 1e-6
"""Added to the norm before dividing by it, as `torch.nn.utils.clip_grad_norm_` does."""


@dataclass(frozen=True, kw_only=True)
class OptimizerStep:
    """The parallelized model and what one step needs beside it."""

    task: TrainingTask
    model: nn.Module
    weights: WorkingWeights
    update: Update
    max_grad_norm: float | None
    ranks: int
    replicas: int
    """Ranks that hold the same part of each gradient."""
    device: torch.device
    before_update: Callable[[], None]
    """Called when the gradients are on their way, before weights and optimizer change; waiting in
    it is the checkpoint's."""
    split: StepSplit

    def run(self, batches: Iterable[Any], micro_batches: int, wishes: Wishes) -> PendingTotals:
        """Train on this rank's `micro_batches` batches of the global batch.

        All ranks learn of the same step what one of them was asked or wishes for, through the one
        reduction that also carries loss, count and gradient norm. Nothing here waits for the
        device, clipping by an optimizer that is not fused apart.
        """
        sums = self._accumulate(batches, micro_batches)
        self.split.computed()
        gradients = self.update.gradients()
        local = torch.stack([*sums, self._squares(gradients), *self._wished(wishes)])
        dist.all_reduce(local)
        loss_sum, count, squares, *wished = local.unbind()
        count = count.clamp(min=1)
        # FSDP has averaged over the ranks what is to be divided by the count of all of them.
        factor = self._scale(squares, self.ranks / count)
        with self.split.waiting("checkpoint"):
            self.before_update()
        self.update.apply(gradients, factor.float())
        self.split.ended()
        return PendingTotals(loss_sum / count, factor, wished)

    def probe(self, batch: Any) -> tuple[float, float]:
        """Mean loss and norm of its gradient, of one batch of each rank. Nothing is updated."""
        sums = self._accumulate([batch], 1)
        local = torch.stack([*sums, self._squared_norm(self.update.gradients())])
        dist.all_reduce(local)
        self.update.forget_gradients()
        loss_sum, count, squares = local.tolist()
        count = max(count, 1)
        return loss_sum / count, math.sqrt(squares) * self.ranks / count

    def _wished(self, wishes: Wishes) -> list[Tensor]:
        wished = (wishes.stop.is_set, wishes.save.is_set, wishes.window.is_set)
        return [self._number(each) for each in wished]

    def _number(self, value: float) -> Tensor:
        return torch.full((), value, dtype=torch.float64, device=self.device)

    def _squares(self, gradients: list[Tensor]) -> Tensor:
        """As `_squared_norm`, where it is needed."""
        return self._number(0) if self.max_grad_norm is None else self._squared_norm(gradients)

    def _squared_norm(self, gradients: list[Tensor]) -> Tensor:
        """This rank's share in that of the whole gradient."""
        return self.weights.squared_norm(gradients) / self.replicas

    def _accumulate(self, batches: Iterable[Any], micro_batches: int) -> tuple[Tensor, Tensor]:
        """Sum and count of the losses, as float64. The gradients are reduced once, by the last."""
        loss_sum, count_sum = self._number(0), self._number(0)
        for index, batch in enumerate(batches):
            with self.weights.micro_batch(index, micro_batches):
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

    def _scale(self, squares: Tensor, mean: Tensor) -> Tensor:
        """What makes means of averaged sums, and bounds their norm: one factor for both.

        NaN where the norm is not finite: no step is better than that one.
        """
        if self.max_grad_norm is None:
            return mean
        norm = squares.sqrt() * mean
        factor = mean * (self.max_grad_norm / (norm + CLIP_EPSILON)).clamp(max=1)
        return torch.where(norm.isfinite(), factor, math.nan)
