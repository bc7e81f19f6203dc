"""GPUs that replay readings, the one thing that tests fake."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from queue import Empty, Queue
from threading import Event

from kopeck_exporter.device import DeviceError, Readings, Reason, Xid

BUSY = {
    "sm_utilization_ratio": 0.965,
    "sm_occupancy_ratio": 0.142,
    "tensor_active_ratio": 0.937,
    "dram_active_ratio": 0.31,
    "nvlink_received": 2e11,
    "nvlink_sent": 1e11,
    "pcie_received": 3e9,
    "pcie_sent": 2e9,
}
"""A H200 that multiplies matrices, with NVLink traffic added."""

CONDITION = {
    "gpu_utilization_ratio": 1.0,
    "sm_clock_hertz": 1.62e9,
    "memory_used_bytes": 9e10,
    "power_watts": 693.0,
    "temperature_celsius": 61.0,
}
THROTTLED = {
    "power_cap": 4e5,
    "sw_thermal": 0.0,
    "hw_thermal": 0.0,
    "hw_power_brake": 0.0,
    "sync_boost": 0.0,
}


class Hang:
    """In the place of a reading: the call does not return until the test is over."""

    def __init__(self) -> None:
        self.began = Event()
        self.ended = Event()


Reading = Readings | DeviceError | Hang


def always(reading: Reading) -> Iterator[Reading]:
    while True:
        yield reading


@dataclass
class ReplayGpu:
    """Answers each call with the next of what was recorded, or raises it."""

    index: int = 0
    uuid: str = "GPU-0"
    model: str = "NVIDIA H200"
    has_activity: bool = True
    activities: Iterator[Reading] = field(default_factory=lambda: always(BUSY))
    conditions: Iterator[Reading] = field(default_factory=lambda: always(CONDITION))
    throttling: Iterator[Reading] = field(default_factory=lambda: always(THROTTLED))
    energies: Iterator[float | DeviceError | None] = field(
        default_factory=lambda: iter(float(1000 + 7000 * each) for each in range(10**6))
    )
    samples: int = 0

    def take_sample(self) -> None:
        self.samples += 1

    def activity(self) -> Readings:
        return _answer(next(self.activities))

    def condition(self) -> Readings:
        return _answer(next(self.conditions))

    def throttled_seconds(self) -> Readings:
        return _answer(next(self.throttling))

    def energy_joules(self) -> float | None:
        if isinstance(reading := next(self.energies), DeviceError):
            raise reading
        return reading


def _answer(reading: Reading) -> Mapping[str, float | Reason]:
    if isinstance(reading, DeviceError):
        raise reading
    if isinstance(reading, Hang):
        reading.began.set()
        reading.ended.wait()
        return {}
    return reading


@dataclass
class ReplayDriver:
    """The GPUs of a container; XIDs come when a test puts them into `xids`."""

    replayed: Sequence[ReplayGpu]
    xids: Queue[Xid | DeviceError] = field(default_factory=Queue)
    unreadable: Sequence[Reason] = ()

    def gpus(self) -> Sequence[ReplayGpu]:
        return self.replayed

    def left_out(self) -> Sequence[Reason]:
        return self.unreadable

    def next_xid(self, seconds: float) -> Xid | None:
        try:
            xid = self.xids.get(timeout=seconds)
        except Empty:
            return None
        if isinstance(xid, DeviceError):
            raise xid
        return xid
