"""Ranks report over a real socket; none of them can harm the others."""

import stat
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from threading import Thread

import pytest

from kopeck_exporter.errors import ErrorCounts
from kopeck_exporter.listener import LARGEST_MESSAGE_BYTES, MOST_SENDERS, ReportListener
from tests.unit.exporter.reporting import Sender, Sidecar, running_sidecar
from tests.waiting import eventually

SAMPLES = "kopeck_samples_total"
ERRORS = "kopeck_exporter_errors_total"


def expect(sidecar: Sidecar, value: float, name: str = SAMPLES, **labels: str) -> None:
    def shown() -> None:
        assert sidecar.value(name, **labels) == value

    eventually(shown)


def test_a_rank_of_any_user_may_connect(sidecar: Sidecar) -> None:
    assert stat.S_IMODE(sidecar.socket.stat().st_mode) == 0o666


def test_many_senders_report_at_once(tmp_path: Path) -> None:
    with running_sidecar(tmp_path, processes=8) as sidecar, ExitStack() as stack:
        senders = [stack.enter_context(Sender(sidecar.socket)) for _ in range(8)]
        for sequence in range(20):
            for rank, sender in enumerate(senders):
                sender.send(rank=rank, seq=sequence, samples=10 * sequence)
        expect(sidecar, 8 * 190)


@pytest.mark.parametrize("wrong", [b"{}", b"\x00" * 9, b"NaN", b'{"v":1,"rank":"0"}'])
def test_what_is_no_report_is_counted_and_the_next_report_is_taken(
    sidecar: Sidecar, sender: Sender, wrong: bytes
) -> None:
    sender.send_bytes(wrong)
    sender.send(samples=24)
    expect(sidecar, 24)
    assert sidecar.value(ERRORS, source="socket", reason="malformed") == 1


def test_a_rank_of_another_worker_is_counted_as_malformed(sidecar: Sidecar, sender: Sender) -> None:
    sender.send(local_rank=1)
    expect(sidecar, 1, ERRORS, source="socket", reason="malformed")


def test_a_message_of_more_than_64_kib_is_counted_and_dropped(
    sidecar: Sidecar, sender: Sender
) -> None:
    sender.send_bytes(b" " * (LARGEST_MESSAGE_BYTES + 1))
    sender.send(samples=24, colour="x" * (LARGEST_MESSAGE_BYTES - 2_000))
    expect(sidecar, 24)
    assert sidecar.value(ERRORS, source="socket", reason="too_large") == 1


def test_an_empty_message_ends_its_connection_and_nothing_else(
    sidecar: Sidecar, sender: Sender
) -> None:
    with Sender(sidecar.socket) as other:
        sender.send_bytes(b"")
        other.send(samples=24)
        expect(sidecar, 24)
        sender.reconnect()
        sender.send(seq=9, samples=32)
        expect(sidecar, 32)


def test_of_the_messages_that_wait_however_many_the_first_and_the_last_are_read(
    tmp_path: Path,
) -> None:
    read: list[bytes] = []
    errors = ErrorCounts()
    path = tmp_path / "s"
    listener = ReportListener(path, lambda data, *_: read.append(data), errors)
    with Sender(path) as one, Sender(path) as other:
        for sender in (one, other):
            sender.socket.settimeout(0)  # else sending waits once a quarter of the queue is full
        for number in range(150):
            one.send_bytes(b"one %d" % number)
            other.send_bytes(b"other %d" % number)
        thread = Thread(target=listener.serve_until_stopped)
        thread.start()

        def all_read() -> None:
            assert set(read) == {b"one 0", b"one 149", b"other 0", b"other 149"}

        eventually(all_read)
        listener.stop()
        thread.join()


def test_at_the_end_messages_are_read_as_they_come(tmp_path: Path) -> None:
    read: list[bytes] = []
    path = tmp_path / "s"
    listener = ReportListener(
        path, lambda data, *_: read.append(data), ErrorCounts(), round_seconds=3600
    )
    thread = Thread(target=listener.serve_until_stopped)
    thread.start()

    def last_read_is(message: bytes) -> None:
        assert read[-1:] == [message]

    with Sender(path) as sender:
        listener.hurry()
        for message in (b"first", b"second", b"third"):
            sender.send_bytes(message)
            eventually(partial(last_read_is, message))
    listener.stop()
    thread.join()


def test_a_process_that_begins_anew_is_told_from_one_that_connects_again(
    sidecar: Sidecar, sender: Sender
) -> None:
    sender.send(seq=50, samples=80)
    expect(sidecar, 80)
    sender.reconnect()
    for sequence in range(60):  # soon past where the first one was
        sender.send(seq=sequence, samples=2 * sequence)
    expect(sidecar, 80 + 118)


def test_senders_that_come_and_go_leave_no_connection_behind(sidecar: Sidecar) -> None:
    for sequence in range(3 * MOST_SENDERS):
        with Sender(sidecar.socket) as sender:
            sender.send(seq=sequence, samples=sequence)
        expect(sidecar, sequence)
    assert sidecar.value(ERRORS, source="socket", reason="too_many_senders") == 0


def test_a_flood_of_connections_is_turned_away_and_counted(
    sidecar: Sidecar, sender: Sender
) -> None:
    with ExitStack() as stack:
        for _ in range(MOST_SENDERS + 9):
            stack.enter_context(Sender(sidecar.socket))
        expect(sidecar, 10, ERRORS, source="socket", reason="too_many_senders")
        sender.send(samples=24)
        expect(sidecar, 24)


def test_an_exporter_that_restarts_loses_no_count(tmp_path: Path) -> None:
    with running_sidecar(tmp_path, processes=2) as sidecar, Sender(sidecar.socket) as sender:
        for rank in (0, 1):
            sender.send(rank=rank, samples=80)
        expect(sidecar, 160)
    with running_sidecar(tmp_path, processes=2) as sidecar, Sender(sidecar.socket) as first:
        first.send(rank=0, seq=2, samples=88)
        with Sender(sidecar.socket) as second:
            assert sidecar.value(SAMPLES) is None  # half a sum would look like a reset
            second.send(rank=1, seq=2, samples=88)
            expect(sidecar, 176)
