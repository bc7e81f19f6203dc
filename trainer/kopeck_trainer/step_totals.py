"""What one step came to, over all ranks, read without holding up the device."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Of one step, over all ranks."""

    loss: float
    """Mean over the global batch."""
    is_skipped: bool
    """True if the weights are as before: the norm of the gradients was not finite."""
    stop: bool
    """True if any rank was asked to stop."""
    save: bool
    """True if rank 0 wishes to save."""
    window: bool
    """True if rank 0 wishes for a trace window."""


class PendingTotals:
    """On their way from the device. Read them once the next step is under way."""

    def __init__(self, loss: Tensor, factor: Tensor, wishes: Sequence[Tensor]) -> None:
        """`factor` of the gradients is NaN where nothing is updated.

        `wishes` to stop, to save, for a window: how many ranks have them.
        """
        numbers = torch.stack([loss, factor, *wishes])
        self._numbers = numbers
        self._arrived: torch.cuda.Event | None = None
        if numbers.is_cuda:
            self._numbers = torch.empty_like(numbers, device="cpu", pin_memory=True)
            self._numbers.copy_(numbers, non_blocking=True)
            # Blocking: a host that spins would take the CPU from its neighbours.
            self._arrived = torch.cuda.Event(blocking=True)  # type: ignore[no-untyped-call]
            self._arrived.record()

    def read(self) -> Totals:
        """Waits until the device has done the step."""
        if self._arrived:
            self._arrived.synchronize()
        loss, factor, stops, saves, windows = self._numbers.tolist()
        return Totals(
            loss=loss,
            is_skipped=math.isnan(factor),
            stop=stops > 0,
            save=saves > 0,
            window=windows > 0,
        )
