"""Calls to the driver of which only one may be under way in a process."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from kopeck_exporter.device import DeviceError, Reason


class Turns:
    """Threads wait for each other, but not for ever for one whose call hangs."""

    def __init__(self, longest_wait_seconds: float) -> None:
        self._longest_wait_seconds = longest_wait_seconds
        self._lock = Lock()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Raises DeviceError where the one before has not come back."""
        if not self._lock.acquire(timeout=self._longest_wait_seconds):
            raise DeviceError(Reason.HUNG)
        try:
            yield
        finally:
            self._lock.release()
