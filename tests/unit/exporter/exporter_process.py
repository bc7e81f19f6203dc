"""The sidecar as its pod runs it: a process of its own."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.unit.exporter.reporting import get, samples_of
from tests.waiting import eventually

SAMPLES = ("kopeck_samples_total", frozenset[tuple[str, str]]())


@dataclass
class Exporter:
    process: subprocess.Popen[str]
    port: int
    socket: Path

    def expect_samples(self, value: float) -> None:
        def shown() -> None:
            assert samples_of(get(self.port, "/metrics").text).get(SAMPLES) == value

        eventually(shown)

    def resident_mib(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (kib,) = re.findall(r"VmRSS:\s+(\d+) kB", status)
        return int(kib) / 1024


def environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "KOPECK_JOB": "llama",
        "KOPECK_WORKER": "3",
        "KOPECK_ATTEMPT": "0",
        "KOPECK_PROCESSES_PER_WORKER": "1",
        "KOPECK_SOCKET": str(folder / "telemetry.sock"),
        "KOPECK_PODINFO": str(folder / "annotations"),
        "KOPECK_EXPORTER_PORT": "0",
    }


def start(variables: dict[str, str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kopeck_exporter"]
    return subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True)


@contextmanager
def running_exporter(folder: Path) -> Iterator[Exporter]:
    with start(environment(folder)) as process:
        try:
            assert process.stderr is not None
            listening = re.match(r"listening on port (\d+) ", process.stderr.readline())
            assert listening is not None
            yield Exporter(process, int(listening[1]), folder / "telemetry.sock")
        finally:
            process.kill()
