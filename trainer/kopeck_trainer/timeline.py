"""Moments on the timeline of the device that trains; the host may be ahead of it."""

from time import monotonic
from typing import Any, Protocol

import torch


class Mark(Protocol):
    """A moment between two pieces of the device's work."""

    @property
    def is_past(self) -> bool:
        """Whether the device has come so far. Only then may its time be asked for."""

    def seconds_since(self, earlier: Any) -> float:
        """On the device's own clock; `earlier` is a mark of the same timeline."""


class Timeline(Protocol):
    """Where marks are made."""

    lags: bool
    """The host hands work over and goes on: what it waits for may cost the device nothing."""

    def mark(self) -> Mark:
        """The moment at which all work is done that the device was given until now."""


class HostMark:
    is_past = True

    def __init__(self) -> None:
        self.at_seconds = monotonic()

    def seconds_since(self, earlier: "HostMark") -> float:
        return self.at_seconds - earlier.at_seconds


class HostTimeline:
    lags = False

    def mark(self) -> HostMark:
        return HostMark()


class CudaMark:
    """An event of the compute stream. It costs microseconds, and nobody waits for it."""

    def __init__(self) -> None:
        self.event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        self.event.record()

    @property
    def is_past(self) -> bool:
        return bool(self.event.query())  # type: ignore[no-untyped-call]

    def seconds_since(self, earlier: "CudaMark") -> float:
        return float(earlier.event.elapsed_time(self.event)) / 1000


class CudaTimeline:
    lags = True

    def mark(self) -> CudaMark:
        return CudaMark()


def timeline_of(device: torch.device) -> Timeline:
    return CudaTimeline() if device.type == "cuda" else HostTimeline()
