"""`python -m tests.gpu.two_ranks`: strategies agree on two ranks, and a rank that hangs is named.

So do weights that are gathered during the update and those of the forward's own gathering, and
what is gathered before its update is told apart. On two GPUs, or on one that the ranks share.
"""

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from kopeck_trainer import exit_codes
from tests.gpu import ours
from tests.gpu.kept import bar, keep, say
from tests.unit.trainer.local_workers import LocalJob

RANKS = 2
GPUS = min(RANKS, torch.cuda.device_count())
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
AT_ONCE = 4
HANG_SECONDS = 20
"""Above what a GPU takes that the other trainings use too."""


def main() -> int:
    with ThreadPoolExecutor(AT_ONCE) as at_once:
        hung = at_once.submit(_hang)
        trained = at_once.map(_losses, WORKERS)
        early_or_not = at_once.map(_losses_gathered, GATHERED)
    losses = dict(zip(WORKERS, trained, strict=True))
    gathered = dict(zip(GATHERED, early_or_not, strict=True))
    hang = hung.result()
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
    content = {"losses": losses, "gathered": gathered, "hang": hang, "bars": bars}
    return keep(f"two_ranks_{GPUS}_gpus", GPUS, content)


def _losses(strategy: str) -> list[float]:
    run = ours.train(
        RANKS,
        entrypoint="byte_llama:build",
        workers=WORKERS[strategy],
        parameters={"dim": 256, "sequenceLength": 256, "learningRate": 3e-4},
        training={
            "globalBatchSize": 32,
            "microBatchSize": 8,
            "precision": "fp32",
            "sharding": {"strategy": strategy},
        },
    )
    say(f"{strategy}: {run.losses[0]:.4f} to {run.losses[-1]:.4f}")
    return [round(loss, 5) for loss in run.losses]


def _losses_gathered(when: str) -> list[float]:
    """Of the first steps, with clipping, as `ours.train` has it."""
    run = ours.train(
        RANKS,
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
        job = LocalJob(Path(folder), impatient, processes_per_worker=GPUS)
        try:
            config = job.config(entrypoint="toy:build_hanging", steps=9)
            exit_code, *_ = job.run(config, workers=RANKS // GPUS)
        finally:
            job.kill_all()
        say(job.workers[0].output)
        message = job.workers[0].termination()["message"]
    return {"exit code": exit_code, "message": message}


if __name__ == "__main__":
    sys.exit(main())
