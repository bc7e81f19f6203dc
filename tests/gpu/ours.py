"""Trainings by our trainer, each rank a process of this machine.

Where it has fewer GPUs than ranks, several share one and are hosts of their own to NCCL, which
refuses them otherwise and takes its sockets then: for what is right, not for what is fast.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import torch

from kopeck.local.port import free_port

SEQUENCE = 4096
WARM_STEPS = 15
"""Not measured: compilation, and clocks that rise."""
STEPS = 40
LAST_STEPS = 5
"""Not measured: in these the profiler starts and runs."""
END_SECONDS = 240


@dataclass(frozen=True, kw_only=True)
class Run:
    """Of one training."""

    step_seconds: float
    """Median."""
    peak_reserved_gib: float
    compile_seconds: float
    losses: list[float]
    profiles: list[dict[str, Any]]
    """By rank."""


def train(
    ranks: int, *, entrypoint: str = "tests.gpu.llama:build", workers: int = 1, **config: Any
) -> Run:
    """`config` is `spec.parameters` and `spec.training`, which is compiled by `default`.

    Raises AssertionError with the output of rank 0 where a rank fails.
    """
    training = {"steps": STEPS, "maxGradNorm": 1.0, "compile": {"mode": "default"}}
    config["training"] = training | config["training"]
    with tempfile.TemporaryDirectory() as folder:
        measured = _measured(Path(folder), ranks, workers, {"entrypoint": entrypoint, **config})
    first = measured[0]
    asked = config["training"]["compile"]["mode"]
    assert first["compile_mode"] == asked, f"{asked} differs from eager"
    return Run(
        step_seconds=statistics.median(first["step_seconds"][WARM_STEPS:-LAST_STEPS]),
        peak_reserved_gib=first["peak_reserved_bytes"] / 2**30,
        compile_seconds=first["compile_seconds"],
        losses=first["losses"],
        profiles=[rank["profile"] for rank in measured],
    )


def _measured(
    folder: Path, world_size: int, workers: int, config: dict[str, Any]
) -> list[dict[str, Any]]:
    """By rank."""
    (folder / "config.json").write_text(json.dumps(config))
    port = free_port()
    ranks = [_start(folder, rank, world_size, workers, port) for rank in range(world_size)]
    deadline = monotonic() + END_SECONDS
    try:
        ends = [rank.wait(max(0.0, deadline - monotonic())) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert not any(ends), (folder / "output-0").read_text()
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(world_size)]


def _start(
    folder: Path, rank: int, world_size: int, workers: int, port: int
) -> subprocess.Popen[bytes]:
    gpus = torch.cuda.device_count()
    variables = {
        "KOPECK_CONFIG": folder / "config.json",
        "KOPECK_JOB_UID": "bench",
        "KOPECK_ATTEMPT": 0,
        "KOPECK_RENDEZVOUS_SECONDS": END_SECONDS,
        "KOPECK_HANG_SECONDS": END_SECONDS,
        "RANK": rank,
        "LOCAL_RANK": rank % gpus,
        "WORLD_SIZE": world_size,
        "LOCAL_WORLD_SIZE": world_size // workers,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "NCCL_HOSTID": rank // gpus,
    }
    with (folder / f"output-{rank}").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.gpu.measured_rank", folder],
            env={**os.environ, **{name: str(value) for name, value in variables.items()}},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
