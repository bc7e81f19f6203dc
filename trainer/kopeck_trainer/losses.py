"""Losses that cost little beside a model's last product."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

IGNORED = -100
"""As a target: no loss here, as in `torch.nn.functional.cross_entropy`."""


@torch.compiler.disable  # type: ignore[untyped-decorator]
def next_token_loss(logits: Tensor, batch: Any) -> tuple[Tensor, Tensor]:
    """The summed cross-entropy in nats, and the number of targets that are not IGNORED.

    For `TrainingTask.loss`. `logits` are (batch, sequence, vocabulary), the second item of `batch`
    has the targets (batch, sequence). On a GPU loss and gradient take one kernel, and the gradient
    takes the memory of contiguous logits: they are no longer of use afterwards.
    """
    targets = batch[1].flatten().contiguous()
    rows = logits.flatten(0, -2)
    loss: Tensor = (
        _CrossEntropy.apply(rows, targets)
        if rows.is_cuda and rows.is_contiguous()
        else functional.cross_entropy(rows.float(), targets, reduction="sum")
    )
    return loss, (targets != IGNORED).sum()


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor) -> Tensor:
        from kopeck_trainer.cross_entropy_kernel import losses_and_gradient  # noqa: PLC0415

        losses = losses_and_gradient(logits, targets)
        torch.autograd.graph.increment_version(logits)  # whoever else needs them is told
        ctx.gradient = logits.detach()
        return losses.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, factor: Tensor) -> tuple[Tensor, None]:
        from kopeck_trainer.cross_entropy_kernel import scale  # noqa: PLC0415

        gradient, ctx.gradient = ctx.gradient, None
        scale(gradient, factor)
        return gradient, None
