"""The launcher starts a sampler beside its ranks, and never waits for it nor ends by its word."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.trainer.local_workers import LocalJob
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
    [worker] = job.start(shell(f"while ! [ -e {done} ]; do sleep 0.05; done; exit 3"))
    connection, _ = exporter.accept()
    with connection:
        connection.settimeout(30)
        message = json.loads(connection.recv(65_536))
        assert (message["kind"], message["origin"]) == ("sampler", "trainer")
        [sampler] = [pid for pid in worker.rank_pids if "kopeck_exporter.sampler" in command(pid)]
        done.touch()
        assert worker.exit_code() == 3
        eventually(lambda: is_gone(sampler))


def command(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()


@pytest.mark.parametrize("code", [0, 5])
def test_a_sampler_that_dies_changes_no_exit_code(
    job: LocalJob, exporter: socket.socket, code: int
) -> None:
    children = "$(cat /proc/$PPID/task/$PPID/children)"
    kill_it = f'for pid in {children}; do [ "$pid" = $$ ] || kill -9 "$pid"; done'
    [worker] = job.start(shell(f"{kill_it}; sleep 0.3; exit {code}"))
    assert worker.exit_code() == code
