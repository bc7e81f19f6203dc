"""Faults that the driver reports by itself, counted as they come."""

from collections import Counter
from collections.abc import Mapping
from threading import Event, Lock

from kopeck_exporter.device import DeviceError, Driver, Reason
from kopeck_exporter.errors import ErrorCounts, Fault
from kopeck_exporter.sampler_report import MOST_XIDS

WAIT_SECONDS = 5.0


class XidCounts:
    """By GPU and number, since this process listens."""

    def __init__(self, driver: Driver, errors: ErrorCounts) -> None:
        self._driver = driver
        self._errors = errors
        self._counts: dict[str, Counter[int]] = {}
        self._lock = Lock()

    def listen(self) -> None:
        """For ever, or until the driver refuses."""
        pause = Event()
        while True:
            try:
                self.listen_once()
            except DeviceError as error:
                if error.reason is Reason.NO_PERMISSION:
                    self._errors.count(Fault.XID_NO_PERMISSION)
                    return
                self._errors.count(Fault.XID_UNKNOWN_ERROR)
                pause.wait(WAIT_SECONDS)

    def listen_once(self) -> None:
        """Raises DeviceError."""
        xid = self._driver.next_xid(WAIT_SECONDS)
        if xid is None:
            return
        with self._lock:
            for uuid in xid.uuids:
                counts = self._counts.setdefault(uuid, Counter())
                if xid.number in counts or len(counts) < MOST_XIDS:
                    counts[xid.number] += 1

    def of(self, uuid: str) -> Mapping[int, int]:
        with self._lock:
            return dict(self._counts.get(uuid, {}))
