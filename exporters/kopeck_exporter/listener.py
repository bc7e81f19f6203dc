"""The Unix socket on which ranks and samplers report.

SOCK_SEQPACKET, because a datagram socket queues eleven messages for all senders together. It is
looked at once a second: messages are cumulative, so of those that wait only the last of each
sender need be read. At the end it is looked at as they come.
"""

import selectors
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Event
from time import monotonic

from kopeck_exporter.errors import ErrorCounts, Fault
from kopeck_exporter.fields import MalformedReportError

LARGEST_MESSAGE_BYTES = 64 * 1024
MOST_SENDERS = 64  # far above a node's ranks; bounds what a sender that leaks connections costs

ROUND_SECONDS = 1.0
MOST_AT_ONCE = 1024
"""Of one sender: more than the kernel queues, so that none is left that newer ones find no room
behind, and an end, so that one who sends on and on keeps no other waiting."""

Receive = Callable[[bytes, int, float], None]
"""Takes a message, its connection and the monotonic time; may raise MalformedReportError."""


@dataclass
class _Sender:
    socket: socket.socket
    connection: int
    is_new: bool = True


class ReportListener:
    """Accepts any number of senders and hands each message on, with its connection and time.

    Whatever a sender does, the others are served: what is no report is counted and dropped.
    """

    def __init__(
        self,
        path: Path,
        receive: Receive,
        errors: ErrorCounts,
        round_seconds: float = ROUND_SECONDS,
    ) -> None:
        """Raises OSError if nothing can listen at `path`."""
        self._receive = receive
        self._round_seconds = round_seconds
        self._errors = errors
        self._connections = count()
        self._stopped = Event()
        self._hurries = Event()
        self._selector = selectors.DefaultSelector()
        self._socket = _listening_socket(path)
        self._selector.register(self._socket, selectors.EVENT_READ)

    def serve_until_stopped(self) -> None:
        while not self._stopped.is_set():
            for key, _ in self._selector.select():
                if key.data is None:
                    self._accept()
                else:
                    self._read(key.data)
            self._hurries.wait(self._round_seconds)
        self._close()

    def hurry(self) -> None:
        """Read each message as it comes from now on: the last ones are wanted at once."""
        self._hurries.set()

    def stop(self) -> None:
        self._stopped.set()
        self._hurries.set()
        with suppress(OSError):  # the thread may have seen the flag, and closed it already
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the selector

    def _accept(self) -> None:
        """All that wait."""
        while True:
            try:
                accepted, _ = self._socket.accept()
            except OSError:  # no more, or we are to stop
                return
            self._register(accepted)

    def _register(self, accepted: socket.socket) -> None:
        if len(self._selector.get_map()) > MOST_SENDERS:
            self._errors.count(Fault.TOO_MANY_SENDERS)
            accepted.close()
            return
        accepted.settimeout(0)
        sender = _Sender(accepted, next(self._connections))
        self._selector.register(accepted, selectors.EVENT_READ, data=sender)

    def _read(self, sender: _Sender) -> None:
        """The last of the messages that wait, and the first of a new sender.

        That one tells a process that began anew from one that only connects again.
        """
        last = b""
        for _ in range(MOST_AT_ONCE):
            data = self._next_message(sender)
            if data is None:
                break
            if sender.is_new:
                self._take(data, sender)
                sender.is_new = False
            else:
                last = data
        if last:
            self._take(last, sender)

    def _next_message(self, sender: _Sender) -> bytes | None:
        """None if there is none that can be read; the sender is let go where it ended."""
        try:
            data, _, flags, _ = sender.socket.recvmsg(LARGEST_MESSAGE_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            data, flags = b"", 0
        if not data:  # the end, or an empty message, which looks the same; senders reconnect
            self._selector.unregister(sender.socket)
            sender.socket.close()
            return None
        if flags & socket.MSG_TRUNC:
            self._errors.count(Fault.TOO_LARGE)
            return None
        return data

    def _take(self, data: bytes, sender: _Sender) -> None:
        try:
            self._receive(data, sender.connection, monotonic())
        except MalformedReportError:
            self._errors.count(Fault.MALFORMED)

    def _close(self) -> None:
        for key in list(self._selector.get_map().values()):
            if key.data is not None:
                key.data.socket.close()
        self._socket.close()
        self._selector.close()


def _listening_socket(path: Path) -> socket.socket:
    """Takes over the path of an exporter before us, and lets every user of the pod connect."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK)
    try:
        listening.bind(str(path))
        path.chmod(0o666)  # the containers' user ids differ; only the pod sees the volume
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening
