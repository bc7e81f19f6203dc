"""`python -m tests.gpu.two_ranks`: strategies agree on two GPUs, and a rank that hangs is named."""

import sys
import tempfile
from pathlib import Path
from typing import Any

from kopeck_trainer import exit_codes
from tests.gpu import ours
from tests.gpu.kept import bar, keep, say
from tests.unit.trainer.local_workers import LocalJob

WORKERS = {"full": 1, "hybrid": 2, "replicate": 1}
"""By strategy; `hybrid` shards inside a worker."""
DIFFERENCE = 1e-3
"""Relative, over all steps, in fp32."""
GATHERED_LATE = {"strategy": "full", "reshardAfterForward": True}
"""Nothing is gathered before the forward that needs it."""
HANG_SECONDS = 5


def main() -> int:
    losses = {
        strategy: _losses({"strategy": strategy}, workers) for strategy, workers in WORKERS.items()
    }
    losses["gathered late"] = _losses(GATHERED_LATE, workers=1)
    hang = _hang()
    named = ["rank 0 waits in nccl:", "for rank 1 (at toy.py:"]
    bars = {
        **{
            f"{strategy} differs from full": bar(
                max(abs(a - b) / b for a, b in zip(each, losses["full"], strict=True)),
                "<=",
                DIFFERENCE,
            )
            for strategy, each in losses.items()
        },
        "exit code of the hang": bar(hang["exit code"], "==", exit_codes.HANG),
        "named in its message": bar(
            sum(words in hang["message"] for words in named), "==", len(named)
        ),
    }
    return keep("two_ranks", 2, {"losses": losses, "hang": hang, "bars": bars})


def _losses(sharding: dict[str, Any], workers: int) -> list[float]:
    run = ours.train(
        2,
        entrypoint="byte_llama:build",
        workers=workers,
        parameters={"dim": 256, "sequenceLength": 256, "learningRate": 3e-4},
        training={
            "globalBatchSize": 32,
            "microBatchSize": 8,
            "precision": "fp32",
            "sharding": sharding,
        },
    )
    say(f"{sharding}: {run.losses[0]:.4f} to {run.losses[-1]:.4f}")
    return [round(loss, 5) for loss in run.losses]


def _hang() -> dict[str, Any]:
    """Of a rank that waits for ever in the third step."""
    with tempfile.TemporaryDirectory() as folder:
        impatient = {"KOPECK_HANG_SECONDS": str(HANG_SECONDS)}
        job = LocalJob(Path(folder), impatient, processes_per_worker=2)
        try:
            [exit_code] = job.run(job.config(entrypoint="toy:build_hanging", steps=9))
        finally:
            job.kill_all()
        say(job.workers[0].output)
        message = job.workers[0].termination()["message"]
    return {"exit code": exit_code, "message": message}


if __name__ == "__main__":
    sys.exit(main())
