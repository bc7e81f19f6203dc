"""The way of reports to the exporter."""

import socket
from collections.abc import Callable
from time import monotonic

RECONNECT_SECONDS = 1.0


class ReportSocket:
    """Sends each report as one datagram of a connection, or drops it: it never waits.

    Reports are cumulative, so the next one makes up for one that was dropped; only the last one of
    all, which has none after it, may wait.
    """

    def __init__(self, path: str, now: Callable[[], float] = monotonic) -> None:
        self._path = path
        self._now = now
        self._connection: socket.socket | None = None
        self._next_try_at = now()
        self.dropped = 0
        """Reports so far that no exporter took."""

    def send(self, report: bytes) -> None:
        connection = self._connection or self._connect_if_due()
        if connection is None or not self._is_taken(connection, report):
            self.dropped += 1

    def send_last(self, report: bytes, seconds: float) -> None:
        """Waits up to `seconds` for an exporter that is behind, and connects anew if need be."""
        for wait_seconds in (0.0, seconds):
            connection = self._connection or self._connect()
            if connection and self._is_taken(connection, report, wait_seconds):
                return
        self.dropped += 1

    def close(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None

    def _is_taken(
        self, connection: socket.socket, report: bytes, wait_seconds: float = 0.0
    ) -> bool:
        connection.settimeout(wait_seconds)
        try:
            connection.send(report)
        except (BlockingIOError, TimeoutError):
            return False  # the exporter is behind
        except OSError:
            self.close()
            return False
        return True

    def _connect_if_due(self) -> socket.socket | None:
        if self._now() < self._next_try_at:
            return None
        self._next_try_at = self._now() + RECONNECT_SECONDS
        return self._connect()

    def _connect(self) -> socket.socket | None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.setblocking(False)  # noqa: FBT003
        try:
            connection.connect(self._path)
        except OSError:
            connection.close()
            return None
        self._connection = connection
        return connection
