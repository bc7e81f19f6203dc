"""The sidecar as a process: what it takes, how it ends, what it says."""

import signal
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from tests.unit.exporter.exporter_process import Exporter, environment, running_exporter, start
from tests.unit.exporter.reporting import Sender, get


@pytest.fixture
def exporter(tmp_path: Path) -> Iterator[Exporter]:
    with running_exporter(tmp_path) as running:
        yield running


def test_a_report_becomes_a_metric_in_less_than_40_mib(exporter: Exporter) -> None:
    with Sender(exporter.socket) as sender:
        sender.send(samples=24)
        exporter.expect_samples(24)
    assert exporter.resident_mib() < 40


def test_after_sigterm_one_scrape_is_served_and_then_it_ends(exporter: Exporter) -> None:
    with Sender(exporter.socket) as sender:
        sender.send(samples=24)
        exporter.expect_samples(24)
        exporter.process.send_signal(signal.SIGTERM)
        sender.send(seq=2, samples=32)
        get(exporter.port, "/metrics")
    assert exporter.process.wait(timeout=30) == 0


def test_after_sigterm_without_a_scrape_it_ends_by_itself(exporter: Exporter) -> None:
    asked_at = monotonic()
    exporter.process.send_signal(signal.SIGTERM)
    assert get(exporter.port, "/healthz").status == 200
    assert exporter.process.wait(timeout=30) == 0
    assert monotonic() - asked_at >= 1.5


def test_it_stands_still_for_a_while_and_no_message_is_lost(exporter: Exporter) -> None:
    with Sender(exporter.socket) as sender:
        sender.send(samples=8)
        exporter.expect_samples(8)
        exporter.process.send_signal(signal.SIGSTOP)
        sender.socket.settimeout(0)
        for sequence in range(2, 12):  # a second at ten steps a second
            sender.send(seq=sequence, samples=8 * sequence)
        exporter.process.send_signal(signal.SIGCONT)
        exporter.expect_samples(88)


def test_killed_and_started_again_it_takes_over_the_path_and_the_counts(tmp_path: Path) -> None:
    with running_exporter(tmp_path) as exporter, Sender(exporter.socket) as sender:
        sender.send(samples=24)
        exporter.expect_samples(24)
        exporter.process.kill()
        exporter.process.wait()
        with pytest.raises(OSError, match=r"Broken pipe|reset"):
            sender.send(seq=2, samples=32)
    with running_exporter(tmp_path) as exporter, Sender(exporter.socket) as sender:
        sender.send(seq=3, samples=40)
        exporter.expect_samples(40)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("KOPECK_JOB", "", "KOPECK_JOB is not set"),
        ("KOPECK_SOCKET", "/nowhere/telemetry.sock", "KOPECK_SOCKET: cannot listen"),
        ("KOPECK_SOCKET", "/tmp/" + "x" * 200, "KOPECK_SOCKET: cannot listen"),  # noqa: S108
        ("KOPECK_SOCKET", "/", "KOPECK_SOCKET: cannot listen"),
    ],
)
def test_what_is_wrong_in_its_environment_is_said_in_a_sentence(
    tmp_path: Path, name: str, value: str, sentence: str
) -> None:
    with start(environment(tmp_path) | {name: value}) as process:
        _, said = process.communicate(timeout=30)
    assert process.returncode == 2
    assert said.startswith(sentence)
    assert said.count("\n") == 1


def test_a_taken_port_is_said_in_a_sentence(exporter: Exporter, tmp_path: Path) -> None:
    taken = {"KOPECK_EXPORTER_PORT": str(exporter.port), "KOPECK_SOCKET": str(tmp_path / "2.sock")}
    with start(environment(tmp_path) | taken) as process:
        _, said = process.communicate(timeout=30)
    assert process.returncode == 2
    assert said.startswith(f"KOPECK_EXPORTER_PORT: cannot listen on {exporter.port}")
