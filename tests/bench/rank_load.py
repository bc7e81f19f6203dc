"""`python -m tests.bench.rank_load SOCKET RANKS PER_SECOND`: ranks that report, until SIGTERM.

Like the trainer's, their sockets never wait. Last on standard output: how many messages were sent,
and how many were dropped because the exporter was behind, as JSON.
"""

import json
import signal
import socket
import sys
from time import monotonic, sleep

from tests.unit.exporter.reporting import a_message


class _Ended(Exception):  # noqa: N818  no error
    pass


def main() -> int:
    path, ranks, per_second = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    signal.signal(signal.SIGTERM, _end)
    connections = [_connected(path) for _ in range(ranks)]
    sent = dropped = 0
    due_at = monotonic()
    try:
        for sequence in range(1, sys.maxsize):
            for rank, connection in enumerate(connections):
                try:
                    connection.send(_message(rank, sequence))
                    sent += 1
                except BlockingIOError:
                    dropped += 1
            due_at += 1 / per_second
            sleep(max(0.0, due_at - monotonic()))
    except _Ended:
        print(json.dumps({"sent": sent, "dropped": dropped}), flush=True)
    return 0


def _message(rank: int, sequence: int) -> bytes:
    message = a_message(rank=rank, seq=sequence, samples=sequence, world_size=8)
    return json.dumps(message).encode()


def _connected(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(path)
    connection.settimeout(0)
    return connection


def _end(*_: object) -> None:
    raise _Ended


if __name__ == "__main__":
    sys.exit(main())
