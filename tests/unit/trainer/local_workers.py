"""Workers of a job on this machine: real launchers and ranks, each worker a process."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kopeck.local.port import free_port
from tests.waiting import eventually

BUILDERS = Path(__file__).parent / "builders"
END_SECONDS = 300  # torch may have to compile, on two busy cores


@dataclass
class Worker:
    """One launcher, and where its output and termination message go."""

    process: subprocess.Popen[bytes]
    output_file: Path
    termination_log: Path

    @property
    def output(self) -> str:
        return self.output_file.read_text()

    @property
    def rank_pids(self) -> list[int]:
        pid = self.process.pid
        return [
            int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        ]

    def exit_code(self) -> int:
        return self.process.wait(timeout=END_SECONDS)

    def termination(self) -> dict[str, Any]:
        content = json.loads(self.termination_log.read_text())
        assert isinstance(content, dict)
        return content


@dataclass
class LocalJob:
    """The workers of one job. Each `start` is one attempt."""

    folder: Path
    environ: dict[str, str]
    processes_per_worker: int = 1
    workers: list[Worker] = field(default_factory=list)

    @property
    def checkpoints(self) -> Path:
        return self.folder / "checkpoints" / "uid"

    def config(
        self, *, entrypoint: str = "toy:build", block: str | None = None, **training: Any
    ) -> dict[str, Any]:
        """The toy, uncompiled, with checkpoints. Or one of the blocks of `modes`."""
        defaults = {
            "steps": 4,
            "globalBatchSize": 8,
            "microBatchSize": 2,
            "precision": "fp32",
            "compile": {"mode": "off"},
            "checkpoint": {"path": str(self.folder / "checkpoints"), "everySteps": 2},
        }
        if block:
            entrypoint = "modes:build"
        return {
            "entrypoint": entrypoint,
            "parameters": {"block": block} if block else {},
            "training": defaults | training,
        }

    def start(self, config: dict[str, Any], *, workers: int = 1, attempt: int = 0) -> list[Worker]:
        port = free_port()
        self.workers = [
            self._start_worker(config, index, workers, attempt, port) for index in range(workers)
        ]
        return self.workers

    def run(self, config: dict[str, Any], *, workers: int = 1, attempt: int = 0) -> list[int]:
        """The exit codes of a whole attempt, by worker."""
        return [
            worker.exit_code() for worker in self.start(config, workers=workers, attempt=attempt)
        ]

    @property
    def told_step(self) -> int:
        """The last one that rank 0 has said to be past; 0 before the first."""
        lines = [line for line in self.workers[0].output.splitlines() if "  loss " in line]
        return max((int(line.split()[1].partition("/")[0]) for line in lines), default=0)

    def step_reached(self, step: int) -> None:
        """Wait until rank 0 has said that it is past `step`."""

        def says() -> None:
            if self.workers[0].process.poll() is not None:
                raise RuntimeError(self.workers[0].output)
            assert self.told_step >= step, self.workers[0].output

        eventually(says, seconds=END_SECONDS)

    def kill_all(self) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                for pid in worker.rank_pids:
                    with suppress(ProcessLookupError):  # it has ended meanwhile
                        os.kill(pid, signal.SIGKILL)
                worker.process.kill()
                worker.process.wait()

    def _start_worker(
        self, config: dict[str, Any], index: int, workers: int, attempt: int, port: int
    ) -> Worker:
        own = self.folder / f"attempt-{attempt}-worker-{index}"
        own.mkdir()
        (own / "config.json").write_text(json.dumps(config))
        variables = {
            "KOPECK_CONFIG": str(own / "config.json"),
            "KOPECK_NAMESPACE": "team",
            "KOPECK_JOB": "toy",
            "KOPECK_JOB_UID": "uid",
            "KOPECK_ATTEMPT": str(attempt),
            "KOPECK_WORKER": str(index),
            "KOPECK_WORKERS": str(workers),
            "KOPECK_PROCESSES_PER_WORKER": str(self.processes_per_worker),
            "KOPECK_MASTER_HOST": "127.0.0.1",
            "KOPECK_MASTER_PORT": str(port),
            "KOPECK_RENDEZVOUS_ID": f"uid-{attempt}",
            "KOPECK_RENDEZVOUS_SECONDS": str(END_SECONDS),
            "KOPECK_HANG_SECONDS": str(END_SECONDS),
            "KOPECK_GRACE_SECONDS": "60",
            "KOPECK_TERMINATION_LOG": str(own / "termination.json"),
            "NCCL_HOSTID": str(index),  # as a machine of its own, so that workers can share a GPU
            "PYTHONPATH": os.pathsep.join([str(BUILDERS), *sys.path]),
        }
        with (own / "output").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "kopeck_trainer"],
                env={**os.environ, **variables, **self.environ},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        return Worker(process, own / "output", own / "termination.json")
