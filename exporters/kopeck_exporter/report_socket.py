"""The way of reports to the exporter."""

import socket
from collections.abc import Callable
from time import monotonic

RECONNECT_SECONDS = 1.0


class ReportSocket:
    """Sends each report as one datagram of a connection, or drops it: it never waits.

    Reports are cumulative, so the next one makes up for one that was dropped.
    """

    def __init__(self, path: str, now: Callable[[], float] = monotonic) -> None:
        self._path = path
        self._now = now
        self._connection: socket.socket | None = None
        self._next_try_at = now()

    def send(self, report: bytes) -> None:
        connection = self._connection or self._connect()
        if connection is None:
            return
        try:
            connection.send(report)
        except BlockingIOError:
            return  # the exporter is behind
        except OSError:
            self.close()

    def close(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None

    def _connect(self) -> socket.socket | None:
        if self._now() < self._next_try_at:
            return None
        self._next_try_at = self._now() + RECONNECT_SECONDS
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.setblocking(False)  # noqa: FBT003
        try:
            connection.connect(self._path)
        except OSError:
            connection.close()
            return None
        self._connection = connection
        return connection
