"""What one step came to, over all ranks, read without holding up the device."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Totals:
    """Of one step, over all ranks."""

    loss: float
    """Mean over the global batch."""
    stop: bool
    """True if any rank was asked to stop."""
    save: bool
    """True if rank 0 wishes to save."""


class PendingTotals:
    """On their way from the device. Read them once the next step is under way."""

    def __init__(self, loss: Tensor, stops: Tensor, saves: Tensor) -> None:
        numbers = torch.stack([loss, stops, saves])
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
        loss, stops, saves = self._numbers.tolist()
        return Totals(loss=loss, stop=stops > 0, save=saves > 0)
