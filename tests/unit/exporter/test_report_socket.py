import socket
from pathlib import Path
from threading import Thread

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
        assert reports.dropped == 2
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


def test_an_exporter_that_does_not_read_stalls_nobody_and_what_it_misses_is_counted(
    tmp_path: Path,
) -> None:
    reports = ReportSocket(str(tmp_path / "socket"))
    with an_exporter(tmp_path / "socket") as server:
        for _ in range(10_000):
            reports.send(b"x" * 1000)
        with server.accept()[0] as connection:
            reports.close()
            assert len(all_of(connection)) == 10_000 - reports.dropped


def test_the_last_report_waits_for_an_exporter_that_is_behind(tmp_path: Path) -> None:
    reports = ReportSocket(str(tmp_path / "socket"))
    with an_exporter(tmp_path / "socket") as server:
        while not reports.dropped:
            reports.send(b"x" * 1000)
        ending = Thread(target=reports.send_last, args=(b"last", 60.0))
        ending.start()
        with server.accept()[0] as connection:
            while connection.recv(2000) != b"last":
                continue
        ending.join()
    assert reports.dropped == 1
    reports.close()


def test_the_last_report_goes_to_an_exporter_that_has_just_restarted(tmp_path: Path) -> None:
    reports = ReportSocket(str(tmp_path / "socket"), now=Time())
    with an_exporter(tmp_path / "socket") as server:
        reports.send(b"first")
        server.accept()[0].close()
    (tmp_path / "socket").unlink()
    with an_exporter(tmp_path / "socket") as server:
        reports.send_last(b"last", 60.0)
        with server.accept()[0] as connection:
            assert connection.recv(1000) == b"last"
    reports.close()


def test_the_last_report_does_not_wait_where_nobody_listens_or_reads(tmp_path: Path) -> None:
    reports = ReportSocket(str(tmp_path / "socket"))
    reports.send_last(b"lost", 3600.0)
    with an_exporter(tmp_path / "socket"):
        while reports.dropped < 2:
            reports.send(b"x" * 1000)
        reports.send_last(b"lost too", 0.01)
    assert reports.dropped == 3
    reports.close()


def all_of(connection: socket.socket) -> list[bytes]:
    """Until the other end is closed."""
    return list(iter(lambda: connection.recv(2000), b""))
