"""One GPU, read again and again: what is known of it now, and nothing that cannot be true.

The readings of a call that failed are gone with it. While a call hangs, all of them are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event, Lock
from typing import Any

from kopeck_exporter.device import DIRECTIONS, THROTTLE_REASONS, DeviceError, Gpu, Readings, Reason
from kopeck_exporter.errors import ErrorCounts, Fault
from kopeck_exporter.growth import Growth
from kopeck_exporter.plausible import checked

ROUND_SECONDS = 1.0
THROTTLING_SECONDS = 5.0
ENERGY_SECONDS = 10.0
"""It takes the driver 3 ms and more to say."""

SHORTEST_INTERVAL_SECONDS = 0.1
"""Between two samples: NVML answers a shorter one with success, and 0."""

HUNG_SECONDS = 5.0
"""The slowest call takes some 20 ms."""

LINKS = ("nvlink", "pcie")
_MOST_WATTS = 1e4

Clock = Callable[[], float]

_FAULTS: Mapping[Reason, Fault] = {
    Reason.NO_LIBRARY: Fault.NVML_NO_LIBRARY,
    Reason.NO_PERMISSION: Fault.NVML_NO_PERMISSION,
    Reason.GPU_LOST: Fault.NVML_GPU_LOST,
    Reason.HUNG: Fault.NVML_HUNG,
    Reason.UNKNOWN_ERROR: Fault.NVML_UNKNOWN_ERROR,
    Reason.IMPLAUSIBLE: Fault.NVML_IMPLAUSIBLE,
}
_ACTIVITY_FAULTS: Mapping[Reason, Fault] = {
    **_FAULTS,
    Reason.NO_PERMISSION: Fault.GPM_NO_PERMISSION,
    Reason.UNKNOWN_ERROR: Fault.GPM_UNKNOWN_ERROR,
    Reason.IMPLAUSIBLE: Fault.GPM_IMPLAUSIBLE,
}


def fault_of(reason: Reason) -> Fault:
    """Of a call to the driver other than those for activity."""
    return _FAULTS[reason]


class _GpuLostError(Exception):
    """It fell off the bus; nothing is asked of it any more."""


@dataclass
class _Group:
    """Readings that are taken together, every so many seconds, until the driver forbids it."""

    read: Callable[[], Mapping[str, Any]]
    every_seconds: float
    faults: Mapping[Reason, Fault]
    known: Mapping[str, Any]
    due_at: float = 0.0
    is_refused: bool = False


class GpuSampling:
    """`run` takes readings, in a thread of its own; `known` is asked by another."""

    def __init__(self, gpu: Gpu, errors: ErrorCounts, clock: Clock) -> None:
        self.gpu = gpu
        self._errors = errors
        self._clock = clock
        self._lock = Lock()
        self._call_began_at: float | None = None
        self._is_hung = False
        self._is_lost = False
        self._sampled_at: float | None = None
        self._traffic = {f"{link}_{way}": 0.0 for link in LINKS for way in DIRECTIONS}
        self._throttled = {reason: Growth(most_per_second=1.0) for reason in THROTTLE_REASONS}
        self._energy = Growth(most_per_second=_MOST_WATTS)
        self._groups = [
            _Group(self._activity, ROUND_SECONDS, _ACTIVITY_FAULTS, {}),
            _Group(self._condition, ROUND_SECONDS, _FAULTS, {}),
            _Group(self._throttling, THROTTLING_SECONDS, _FAULTS, {}),
            _Group(self._joules, ENERGY_SECONDS, _FAULTS, {}),
        ]
        if not gpu.has_activity:
            del self._groups[0]

    def run(self) -> None:
        """Until the GPU is lost."""
        pause = Event()
        due_at = self._clock()
        try:
            while not self._is_lost:
                self.take_round()
                due_at = max(due_at + ROUND_SECONDS, self._clock())
                pause.wait(due_at - self._clock())
        finally:
            self._lose()  # by a bug, too, its last readings would stay for ever

    def take_round(self) -> None:
        """Read what is due; nothing of a GPU that is lost."""
        if self._is_lost:
            return
        now = self._clock()
        try:
            for group in self._groups:
                if now >= group.due_at and not group.is_refused:
                    group.due_at = now + group.every_seconds - ROUND_SECONDS / 2
                    self._take(group)
        except _GpuLostError:
            self._lose()

    def known(self) -> dict[str, Any] | None:
        """What the last calls told, as it is sent on; None if one hangs or the GPU is lost."""
        now = self._clock()
        with self._lock:
            began_at = self._call_began_at
            hangs = began_at is not None and now - began_at > HUNG_SECONDS
            if hangs and not self._is_hung:
                self._errors.count(Fault.NVML_HUNG)
            self._is_hung = hangs
            if hangs or self._is_lost:
                return None
            return {name: each for group in self._groups for name, each in group.known.items()}

    def _lose(self) -> None:
        with self._lock:
            self._is_lost = True

    def _take(self, group: _Group) -> None:
        known: Mapping[str, Any] = {}
        try:
            known = group.read()
        except DeviceError as error:
            self._errors.count(group.faults[error.reason])
            if error.reason is Reason.GPU_LOST:
                raise _GpuLostError from error
            group.is_refused = error.reason is Reason.NO_PERMISSION
        finally:
            with self._lock:
                group.known = known
                self._call_began_at = None

    def _activity(self) -> Mapping[str, Any]:
        """Empty after the first sample, and where two are too close to each other."""
        before = self._begin_call()
        self.gpu.take_sample()
        last, self._sampled_at = self._sampled_at, self._clock()
        if last is None or before - last < SHORTEST_INTERVAL_SECONDS:
            return {}
        known = self._counted(checked(self.gpu.activity()), _ACTIVITY_FAULTS)
        return _ratios(known) | self._bytes(known, self._sampled_at - last)

    def _condition(self) -> Mapping[str, Any]:
        self._begin_call()
        return self._counted(checked(self.gpu.condition()), _FAULTS)

    def _throttling(self) -> Mapping[str, Any]:
        now = self._begin_call()
        totals: dict[str, float | Reason] = {}
        for name, value in self.gpu.throttled_seconds().items():
            total = value
            if not isinstance(value, Reason):
                grown = self._throttled[name].after(value, now)
                total = Reason.IMPLAUSIBLE if grown is None else grown
            totals[name] = total
        known = self._counted(totals, _FAULTS)
        return {"throttled_seconds": known} if known else {}

    def _joules(self) -> Mapping[str, Any]:
        now = self._begin_call()
        joules = self.gpu.energy_joules()
        if joules is None:
            return {}
        total = self._energy.after(joules, now)
        if total is None:
            raise DeviceError(Reason.IMPLAUSIBLE)
        return {"energy_joules": total}

    def _bytes(self, rates: Mapping[str, float], seconds: float) -> dict[str, Any]:
        """Totals by link and direction, of the links whose rates are known."""
        totals: dict[str, dict[str, float]] = {}
        for link in LINKS:
            for way in DIRECTIONS:
                name = f"{link}_{way}"
                if name in rates:
                    self._traffic[name] += rates[name] * seconds
                    totals.setdefault(f"{link}_bytes", {})[way] = round(self._traffic[name])
        return totals

    def _counted(self, readings: Readings, faults: Mapping[Reason, Fault]) -> dict[str, float]:
        """Those that are values; the others are counted."""
        known = {}
        for name, value in readings.items():
            if value is Reason.GPU_LOST:
                raise DeviceError(Reason.GPU_LOST)
            if isinstance(value, Reason):
                self._errors.count(faults[value])
            else:
                known[name] = value
        return known

    def _begin_call(self) -> float:
        now = self._clock()
        with self._lock:
            self._call_began_at = now
        return now


def _ratios(known: Mapping[str, float]) -> dict[str, Any]:
    return {name: value for name, value in known.items() if name.endswith("_ratio")}
