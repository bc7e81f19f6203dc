"""Counts of the inputs that the exporter refused."""

from collections import Counter
from enum import Enum
from threading import Lock


class Fault(Enum):
    """What can be wrong with an input: its source, and the reason of the refusal."""

    MALFORMED = ("socket", "malformed")
    TOO_LARGE = ("socket", "too_large")
    TOO_MANY_SENDERS = ("socket", "too_many_senders")
    INVALID_RATE = ("annotations", "invalid_rate")
    UNREADABLE = ("annotations", "unreadable")

    @property
    def source(self) -> str:
        return self.value[0]

    @property
    def reason(self) -> str:
        return self.value[1]


class ErrorCounts:
    """How often each fault occurred since the exporter started. Threads may share it."""

    def __init__(self) -> None:
        self._counts = Counter(dict.fromkeys(Fault, 0))
        self._lock = Lock()

    def count(self, fault: Fault) -> None:
        with self._lock:
            self._counts[fault] += 1

    def by_fault(self) -> dict[Fault, int]:
        """All faults, those that never occurred at zero: there, zero is known."""
        with self._lock:
            return dict(self._counts)
