"""One real rank without its launcher, from a server that has imported torch already."""

import json
import multiprocessing
import os
import sys
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from kopeck.local.port import free_port
from kopeck_trainer.run_directory import error_file, read_json, report_file
from tests.unit.trainer.local_workers import BUILDERS
from tests.unit.trainer.on_ranks import CONTEXT
from tests.waiting import eventually

END_SECONDS = 300


@dataclass
class RankProcess:
    """A rank that is alone in its job, and what it leaves behind."""

    process: BaseProcess
    folder: Path

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text()

    @property
    def reason(self) -> str:
        """What it would tell the launcher."""
        return str(read_json(error_file(self.folder, 0))["message"])

    @property
    def report(self) -> dict[str, Any]:
        """The last one; empty before the first."""
        return read_json(report_file(self.folder, 0))

    def step_reached(self, step: int) -> None:
        def check() -> None:
            assert self.report.get("step", 0) >= step, self.output

        eventually(check, seconds=END_SECONDS)

    def exit_code(self) -> int:
        """As the launcher tells it: 128 + the signal that ended it."""
        self.process.join(END_SECONDS)
        code = self.process.exitcode
        assert code is not None, self.output
        return code if code >= 0 else 128 - code


def start_rank(
    folder: Path,
    *,
    attempt: int = 0,
    entrypoint: str = "toy:build",
    parameters: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
    **training: Any,
) -> RankProcess:
    """The toy, uncompiled, with a checkpoint in `folder` every two steps."""
    own = folder / f"attempt-{attempt}"
    own.mkdir()
    defaults = {
        "globalBatchSize": 2,
        "microBatchSize": 2,
        "precision": "fp32",
        "compile": {"mode": "off"},
        "checkpoint": {"path": str(folder), "everySteps": 2},
    }
    config = {
        "entrypoint": entrypoint,
        "parameters": parameters or {},
        "training": defaults | training,
    }
    (own / "config.json").write_text(json.dumps(config))
    variables = {
        "KOPECK_CONFIG": str(own / "config.json"),
        "KOPECK_JOB_UID": "uid",
        "KOPECK_ATTEMPT": str(attempt),
        "KOPECK_RENDEZVOUS_SECONDS": str(END_SECONDS),
        "KOPECK_HANG_SECONDS": str(END_SECONDS),
        "KOPECK_RUN_DIR": str(own),
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        **(environ or {}),
    }
    (own / "output").touch()
    process = CONTEXT.Process(target=_run, args=(variables, own / "output"), daemon=True)
    process.start()
    return RankProcess(process, own)


def kept_steps(folder: Path) -> list[int]:
    """Of the complete checkpoints in the `folder` that it was started in."""
    manifests = (folder / "uid").glob("step-*.a?/manifest.json")
    return sorted(json.loads(each.read_text())["step"] for each in manifests)


def _run(variables: dict[str, str], output: Path) -> None:
    import torch  # noqa: PLC0415  preloaded by the fork server

    from kopeck_trainer.rank import main  # noqa: PLC0415

    multiprocessing.current_process().daemon = False  # it may have children
    descriptor = os.open(output, os.O_WRONLY)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    os.environ.update(variables)
    sys.path.insert(0, str(BUILDERS))
    torch.set_num_threads(1)
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
