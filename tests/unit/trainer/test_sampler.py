"""The launcher starts a sampler beside its ranks, and never waits for it nor ends by its word."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.trainer.local_workers import LocalJob, Worker
from tests.unit.trainer.test_launcher import is_gone, shell
from tests.waiting import eventually


@pytest.fixture
def exporter(job: LocalJob) -> Iterator[socket.socket]:
    """What listens where the launcher's pod has its exporter."""
    path = job.folder / "s"
    job.environ["KOPECK_SOCKET"] = str(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(str(path))
        server.listen()
        server.settimeout(30)
        yield server


def test_while_ranks_run_a_sampler_reports_and_afterwards_it_is_gone(
    job: LocalJob, exporter: socket.socket
) -> None:
    done = job.folder / "done"
    [worker] = job.start(shell(f"{until(done)}; exit 3"))
    connection, _ = exporter.accept()
    with connection:
        connection.settimeout(30)
        message = json.loads(connection.recv(65_536))
        assert (message["kind"], message["origin"]) == ("sampler", "trainer")
        sampler = sampler_of(worker)
        done.touch()
        assert worker.exit_code() == 3
        eventually(lambda: is_gone(sampler))


def command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


@pytest.mark.parametrize("code", [0, 5])
def test_a_sampler_that_dies_changes_no_exit_code(
    job: LocalJob, exporter: socket.socket, code: int
) -> None:
    dead = job.folder / "dead"
    [worker] = job.start(shell(f"{until(dead)}; exit {code}"))
    connection, _ = exporter.accept()
    with connection:
        sampler = sampler_of(worker)
        os.kill(sampler, signal.SIGKILL)
        eventually(lambda: is_buried(sampler))
    dead.touch()
    assert worker.exit_code() == code


def is_buried(pid: int) -> None:
    """The process that started it knows that it is dead."""
    assert not Path(f"/proc/{pid}").exists()


def until(file: Path) -> str:
    """In the words of a shell."""
    return f"while ! [ -e {file} ]; do sleep 0.05; done"


def sampler_of(worker: Worker) -> int:
    [sampler] = [pid for pid in worker.rank_pids if "kopeck_exporter.sampler" in command(pid)]
    return sampler
