"""Counts of what the exporter refused, and of what it could not read."""

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from threading import Lock


class Fault(Enum):
    """What can be wrong with a source: its name, and the reason."""

    MALFORMED = ("socket", "malformed")
    TOO_LARGE = ("socket", "too_large")
    TOO_MANY_SENDERS = ("socket", "too_many_senders")
    DROPPED = ("socket", "dropped")
    INVALID_RATE = ("annotations", "invalid_rate")
    UNREADABLE = ("annotations", "unreadable")
    DCGM_UNREACHABLE = ("dcgm", "unreachable")
    DCGM_MALFORMED = ("dcgm", "malformed")
    SAMPLER_DIED = ("sampler", "died")
    NVML_NO_LIBRARY = ("nvml", "no_library")
    NVML_NO_PERMISSION = ("nvml", "no_permission")
    NVML_GPU_LOST = ("nvml", "gpu_lost")
    NVML_HUNG = ("nvml", "hung")
    NVML_UNKNOWN_ERROR = ("nvml", "unknown_error")
    NVML_IMPLAUSIBLE = ("nvml", "implausible")
    GPM_NO_PERMISSION = ("gpm", "no_permission")
    GPM_UNKNOWN_ERROR = ("gpm", "unknown_error")
    GPM_IMPLAUSIBLE = ("gpm", "implausible")
    XID_NO_PERMISSION = ("xid", "no_permission")
    XID_UNKNOWN_ERROR = ("xid", "unknown_error")
    CGROUP_UNREADABLE = ("cgroup", "unreadable")
    WINDOW_PROFILER = ("window", "profiler")
    WINDOW_ANALYSER = ("window", "analyser")
    WINDOW_HUNG = ("window", "hung")
    WINDOW_UNANSWERED = ("window", "unanswered")
    WINDOW_NOT_KEPT = ("window", "not_kept")

    @property
    def source(self) -> str:
        return self.value[0]

    @property
    def reason(self) -> str:
        return self.value[1]


SAMPLER_SOURCES = frozenset({"sampler", "nvml", "gpm", "xid", "cgroup"})
"""A sampler itself and what it reads; it sends its counts on."""

SAMPLER_FAULTS = frozenset(
    {each for each in Fault if each.source in SAMPLER_SOURCES} | {Fault.DROPPED}
)
"""What a sampler counts: of the socket only messages that no exporter took."""

WINDOW_SOURCE = "window"
"""Trace windows: ranks record them, and send their counts by the words of WINDOW_FAULTS."""


class ErrorCounts:
    """How often each fault occurred since the process started. Threads may share it."""

    def __init__(self) -> None:
        self._counts: Counter[Fault] = Counter()
        self._lock = Lock()

    def count(self, fault: Fault) -> None:
        with self._lock:
            self._counts[fault] += 1

    def by_fault(self) -> Mapping[Fault, int]:
        """Those that occurred."""
        with self._lock:
            return dict(self._counts)
