"""`python -m tests.gpu.two_ranks`: strategies agree on two GPUs, and a rank that hangs is named.

So do weights that are gathered during the update and those of the forward's own gathering, and
what is gathered before its update is told apart.
"""

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
GATHERED = ("early", "late", "stale")
GATHERED_STEPS = 5
"""Compared in bf16, before roundings add up; the second is the first with weights of an update."""
SEVERAL_GROUPS = {
    "vocabulary": 4096,
    "dim": 256,
    "layers": 6,
    "heads": 4,
    "groups": 2,
    "hidden": 1024,
    "sequence": 256,
    "learning_rate": 1e-2,
}
"""Of which three are gathered early; one update changes the loss far more than roundings do."""
HANG_SECONDS = 5


def main() -> int:
    losses = {
        strategy: _losses({"strategy": strategy}, workers) for strategy, workers in WORKERS.items()
    }
    gathered = {when: _losses_gathered(when) for when in GATHERED}
    hang = _hang()
    named = ["rank 0 waits in nccl:", "for rank 1 (at toy.py:"]
    bars = {
        **{
            f"{strategy} differs from full": bar(
                _difference(each, losses["full"]), "<=", DIFFERENCE
            )
            for strategy, each in losses.items()
        },
        "gathered early differs from late": bar(
            _difference(gathered["early"], gathered["late"]), "<=", DIFFERENCE
        ),
        "stale differs from late": bar(
            _difference(gathered["stale"], gathered["late"]), ">=", 2 * DIFFERENCE
        ),
        "exit code of the hang": bar(hang["exit code"], "==", exit_codes.HANG),
        "named in its message": bar(
            sum(words in hang["message"] for words in named), "==", len(named)
        ),
    }
    return keep(
        "two_ranks", 2, {"losses": losses, "gathered": gathered, "hang": hang, "bars": bars}
    )


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


def _losses_gathered(when: str) -> list[float]:
    """Of the first steps, with clipping, as `ours.train` has it."""
    run = ours.train(
        2,
        entrypoint="tests.gpu.gathering:build",
        parameters={**SEVERAL_GROUPS, "gathered": when},
        training={
            "globalBatchSize": 32,
            "microBatchSize": 8,
            "precision": "bf16",
            "sharding": {"strategy": "full", "reshardAfterForward": False},
        },
    )
    say(f"gathered {when}: {run.losses[0]:.4f} to {run.losses[-1]:.4f}")
    return [round(loss, 5) for loss in run.losses[:GATHERED_STEPS]]


def _difference(found: list[float], others: list[float]) -> float:
    """The largest of a step, relative."""
    return max(abs(a - b) / b for a, b in zip(found, others, strict=True))


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
