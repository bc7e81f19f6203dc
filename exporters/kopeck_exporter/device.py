"""GPUs as the sampler sees them: the one narrow door, with the driver or a replay behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

THROTTLE_REASONS = ("power_cap", "sw_thermal", "hw_thermal", "hw_power_brake", "sync_boost")
"""Why a clock was held down; `power_cap` is normal at full load, the others are faults."""

DIRECTIONS = ("received", "sent")


class Reason(StrEnum):
    """Why a reading failed. What a device does not support is no failure: it is left out."""

    NO_LIBRARY = "no_library"
    NO_PERMISSION = "no_permission"
    GPU_LOST = "gpu_lost"
    HUNG = "hung"
    UNKNOWN_ERROR = "unknown_error"
    IMPLAUSIBLE = "implausible"


class DeviceError(Exception):
    """A call to the driver failed as a whole."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


Readings = Mapping[str, float | Reason]
"""By name, in base units: a value as the device told it, or why there is none."""


class Gpu(Protocol):
    """One GPU, or one MIG instance. Values are unchecked; each method may raise DeviceError.

    A call may block for ever, in a way that no signal ends.
    """

    @property
    def index(self) -> int:
        """Among the GPUs of the container."""

    @property
    def uuid(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def has_activity(self) -> bool:
        """Whether samples can be taken: since Hopper."""

    def take_sample(self) -> None:
        """Mark now as the end of the interval that `activity` looks at."""

    def activity(self) -> Readings:
        """Of the interval between the last two samples, which must be 0.1 s apart or more.

        `sm_utilization_ratio`, `sm_occupancy_ratio`, `tensor_active_ratio`, `dram_active_ratio`;
        `nvlink_received`, `nvlink_sent`, `pcie_received`, `pcie_sent` in bytes per second.
        """

    def condition(self) -> Readings:
        """Now.

        `gpu_utilization_ratio`, `sm_clock_hertz`, `memory_used_bytes`, `power_watts`,
        `temperature_celsius`.
        """

    def throttled_seconds(self) -> Readings:
        """By THROTTLE_REASONS, since the driver was loaded."""

    def energy_joules(self) -> float | None:
        """Since the driver was loaded; None where it is not told."""


@dataclass(frozen=True, slots=True)
class Xid:
    """A fault that the driver reported, and the GPUs of ours that it is of."""

    number: int
    uuids: tuple[str, ...]


class Driver(Protocol):
    """What makes the GPUs of this container visible."""

    def gpus(self) -> Sequence[Gpu]: ...

    def left_out(self) -> Sequence[Reason]:
        """Why others are not among them, a reason for each board."""

    def next_xid(self, seconds: float) -> Xid | None:
        """The next one to come, waiting for it; None if there was none. May raise DeviceError."""
