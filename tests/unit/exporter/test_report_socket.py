import socket
from pathlib import Path

from kopeck_exporter.report_socket import ReportSocket


class Time:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def an_exporter(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(str(path))
    server.listen()
    return server


def test_without_an_exporter_reports_are_dropped_and_it_is_looked_for_once_a_second(
    tmp_path: Path,
) -> None:
    time = Time()
    reports = ReportSocket(str(tmp_path / "socket"), now=time)
    reports.send(b"lost")
    with an_exporter(tmp_path / "socket") as server:
        server.setblocking(False)  # noqa: FBT003
        time.seconds = 0.9
        reports.send(b"lost too")
        time.seconds = 1.0
        reports.send(b"kept")
        with server.accept()[0] as connection:
            assert connection.recv(1000) == b"kept"
    reports.close()


def test_an_exporter_that_restarts_gets_reports_again(tmp_path: Path) -> None:
    time = Time()
    reports = ReportSocket(str(tmp_path / "socket"), now=time)
    with an_exporter(tmp_path / "socket") as server:
        reports.send(b"first")
        server.accept()[0].close()
    (tmp_path / "socket").unlink()
    reports.send(b"lost: the connection is broken")
    with an_exporter(tmp_path / "socket") as server:
        time.seconds = 1.0
        reports.send(b"second")
        with server.accept()[0] as connection:
            assert connection.recv(1000) == b"second"
    reports.close()


def test_an_exporter_that_does_not_read_stalls_nobody(tmp_path: Path) -> None:
    reports = ReportSocket(str(tmp_path / "socket"))
    with an_exporter(tmp_path / "socket") as server:
        for _ in range(10_000):
            reports.send(b"x" * 1000)
        with server.accept()[0] as connection:
            assert connection.recv(2000) == b"x" * 1000
    reports.close()
