"""`python -m tests.gpu.smoke`: a training on one GPU is stopped, and its next attempt completes.

By the launcher, in `compile.mode: auto`, with checkpoints in the background, two micro-batches to a
step, and processes that read them.
"""

import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from kopeck_trainer import exit_codes
from tests.gpu.kept import bar, keep, say
from tests.unit.trainer.local_workers import LocalJob

STEPS = 400
STOPPED_AFTER = 150
TOLD = ("step", "checkpointStep", "loss", "compileMode", "compileDecision", "compileSeconds", "mfu")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        inductor = Path(folder, "inductor")
        job = LocalJob(Path(folder), {"TORCHINDUCTOR_CACHE_DIR": str(inductor)})
        try:
            stopped = _stopped(job)
            shutil.rmtree(inductor)  # a pod's next attempt has the shared cache only
            completed = _completed(job)
        finally:
            job.kill_all()
    bars = {
        "exit code when stopped": bar(stopped["exit code"], "==", exit_codes.CHECKPOINTED),
        "exit code at the end": bar(completed["exit code"], "==", exit_codes.COMPLETED),
        "steps lost": bar(stopped["step"] - stopped["checkpointStep"], "==", 0),
        "compiles faster": bar(stopped["compileSeconds"] / completed["compileSeconds"], ">=", 3),
    }
    return keep("smoke", 1, {"stopped": stopped, "completed": completed, "bars": bars})


def _config(job: LocalJob) -> dict[str, Any]:
    config = job.config(
        entrypoint="byte_llama:build",
        steps=STEPS,
        globalBatchSize=32,
        microBatchSize=16,
        precision="bf16",
        maxGradNorm=1.0,
        data={"workers": 2},
        compile={"mode": "auto", "cache": str(job.folder / "cache")},
        checkpoint={"path": str(job.folder / "checkpoints"), "everySteps": 100, "async": True},
    )
    config["parameters"] = {"dim": 512, "layers": 4, "heads": 8, "sequenceLength": 512}
    return config


def _stopped(job: LocalJob) -> dict[str, Any]:
    [worker] = job.start(_config(job))
    job.step_reached(STOPPED_AFTER)
    worker.process.send_signal(signal.SIGTERM)
    return _ended(job)


def _completed(job: LocalJob) -> dict[str, Any]:
    job.start(_config(job), attempt=1)
    return _ended(job)


def _ended(job: LocalJob) -> dict[str, Any]:
    [worker] = job.workers
    exit_code = worker.exit_code()
    say(worker.output)
    told = worker.termination()
    return {"exit code": exit_code, **{name: told.get(name) for name in TOLD}}


if __name__ == "__main__":
    sys.exit(main())
