"""One worker on this machine: an exporter and a launcher, as in a pod."""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from kopeck.api.names import ANNOTATION_HOURLY_RATE
from kopeck.api.trainingjob import TrainingJobSpec
from kopeck.cost.dollars import exact_dollars
from kopeck.local.devices import VISIBLE_DEVICES, devices_of
from kopeck.plan.revision import canonical_json, trainer_config

_GRACE_SECONDS = 60
_RENDEZVOUS_SECONDS = 300
_HANG_SECONDS = 600


@dataclass(frozen=True)
class LocalJob:
    """A job on this machine: where its files are, and where its ranks meet."""

    name: str
    spec: TrainingJobSpec
    folder: Path
    modules: Path
    """Where the entrypoint's module may lie: the manifest's folder."""
    master_port: int
    hourly_rate: Decimal | None
    """Dollars an hour of one worker; None while unknown."""


def config_on(folder: Path, spec: TrainingJobSpec) -> dict[str, Any]:
    """What the trainer reads, with checkpoints and kept traces in a folder of this machine."""
    config = trainer_config(spec)
    training = config.get("training", {})
    if checkpoint := training.get("checkpoint"):
        checkpoint["path"] = str(folder / "checkpoints")
    if "keep" in training.get("profile", {}):
        training["profile"]["keep"] = str(folder / "traces")
    return config


class LocalWorker:
    """The processes of one worker, from its creation until `stop`."""

    def __init__(self, job: LocalJob, index: int) -> None:
        self._folder = job.folder / f"worker-{index}"
        self._folder.mkdir()
        self._write_files(job)
        environment = os.environ | self._environment(job, index)
        self._exporter = self._start("kopeck_exporter", environment, "exporter.log")
        self._launcher = self._start("kopeck_trainer", environment, "trainer.log")

    @property
    def log(self) -> Path:
        """What the trainer says."""
        return self._folder / "trainer.log"

    def exit_code(self) -> int | None:
        """Of the launcher; None while it runs."""
        return self._launcher.poll()

    def ask_to_end(self) -> None:
        """Let it save a checkpoint and end."""
        if self._launcher.poll() is None:
            self._launcher.terminate()

    def stop(self) -> None:
        """End both processes; the launcher ends its ranks."""
        self.ask_to_end()
        try:
            self._launcher.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._launcher.kill()
            self._launcher.wait()
        self._exporter.terminate()
        self._exporter.wait()

    def progress(self) -> dict[str, Any]:
        """/progress of the exporter; empty until it serves."""
        port = re.search(r"port (\d+)", (self._folder / "exporter.log").read_text())
        if port is None:
            return {}
        try:
            with urlopen(f"http://127.0.0.1:{port[1]}/progress", timeout=2) as answer:
                progress: dict[str, Any] = json.load(answer)
        except (URLError, OSError, ValueError):
            return {}
        return progress

    def final_report(self) -> dict[str, Any]:
        """The launcher's termination message; empty if it left none."""
        try:
            report: dict[str, Any] = json.loads((self._folder / "termination.json").read_text())
        except (OSError, ValueError):
            return {}
        return report

    def _write_files(self, job: LocalJob) -> None:
        config = config_on(job.folder, job.spec)
        (self._folder / "config.json").write_text(canonical_json(config))
        rate = job.hourly_rate
        told = "" if rate is None else f'{ANNOTATION_HOURLY_RATE}="{exact_dollars(rate)}"\n'
        (self._folder / "annotations").write_text(told)

    def _environment(self, job: LocalJob, index: int) -> dict[str, str]:
        path = [str(job.modules.resolve()), os.environ.get("PYTHONPATH", "")]
        return {
            "PYTHONPATH": os.pathsep.join(each for each in path if each),
            "KOPECK_CONFIG": str(self._folder / "config.json"),
            "KOPECK_NAMESPACE": "local",
            "KOPECK_JOB": job.name,
            "KOPECK_JOB_UID": "local",
            "KOPECK_ATTEMPT": "0",
            "KOPECK_WORKER": str(index),
            "KOPECK_WORKERS": str(job.spec.workers.replicas),
            "KOPECK_PROCESSES_PER_WORKER": str(job.spec.workers.processes),
            "KOPECK_MASTER_HOST": "127.0.0.1",
            "KOPECK_MASTER_PORT": str(job.master_port),
            "KOPECK_RENDEZVOUS_ID": f"{job.name}-0",
            "KOPECK_RENDEZVOUS_SECONDS": str(_RENDEZVOUS_SECONDS),
            "KOPECK_HANG_SECONDS": str(_HANG_SECONDS),
            "KOPECK_GRACE_SECONDS": str(_GRACE_SECONDS),
            "KOPECK_SOCKET": str(self._folder / "s"),
            "KOPECK_PODINFO": str(self._folder / "annotations"),
            "KOPECK_EXPORTER_PORT": "0",
            "KOPECK_TERMINATION_LOG": str(self._folder / "termination.json"),
            "PYTHONUNBUFFERED": "1",
            **devices_of(index, job.spec.workers.gpus_per_worker, os.environ.get(VISIBLE_DEVICES)),
        }

    def _start(
        self, module: str, environment: dict[str, str], log_name: str
    ) -> subprocess.Popen[bytes]:
        with (self._folder / log_name).open("wb") as log:
            # A session of its own: Ctrl-C reaches us alone, and we ask the launchers to end.
            return subprocess.Popen(
                [sys.executable, "-m", module],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
