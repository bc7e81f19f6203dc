"""Trainings by our trainer, each rank a process of this machine."""

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
    gpus: int, *, entrypoint: str = "tests.gpu.llama:build", workers: int = 1, **config: Any
) -> Run:
    """`config` is `spec.parameters` and `spec.training`, which is compiled by `default`.

    Raises AssertionError with the output of rank 0 where a rank fails.
    """
    training = {"steps": STEPS, "maxGradNorm": 1.0, "compile": {"mode": "default"}}
    config["training"] = training | config["training"]
    with tempfile.TemporaryDirectory() as folder:
        ranks = _measured(Path(folder), gpus, workers, {"entrypoint": entrypoint, **config})
    measured = ranks[0]
    asked = config["training"]["compile"]["mode"]
    assert measured["compile_mode"] == asked, f"{asked} differs from eager"
    return Run(
        step_seconds=statistics.median(measured["step_seconds"][WARM_STEPS:-LAST_STEPS]),
        peak_reserved_gib=measured["peak_reserved_bytes"] / 2**30,
        compile_seconds=measured["compile_seconds"],
        losses=measured["losses"],
        profiles=[rank["profile"] for rank in ranks],
    )


def _measured(
    folder: Path, gpus: int, workers: int, config: dict[str, Any]
) -> list[dict[str, Any]]:
    """By rank."""
    (folder / "config.json").write_text(json.dumps(config))
    port = free_port()
    ranks = [_start(folder, rank, gpus, workers, port) for rank in range(gpus)]
    deadline = monotonic() + END_SECONDS
    try:
        ends = [rank.wait(max(0.0, deadline - monotonic())) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert not any(ends), (folder / "output-0").read_text()
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(gpus)]


def _start(folder: Path, rank: int, ranks: int, workers: int, port: int) -> subprocess.Popen[bytes]:
    variables = {
        "KOPECK_CONFIG": folder / "config.json",
        "KOPECK_JOB_UID": "bench",
        "KOPECK_ATTEMPT": 0,
        "KOPECK_RENDEZVOUS_SECONDS": END_SECONDS,
        "KOPECK_HANG_SECONDS": END_SECONDS,
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": ranks,
        "LOCAL_WORLD_SIZE": ranks // workers,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    with (folder / f"output-{rank}").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.gpu.measured_rank", folder],
            env={**os.environ, **{name: str(value) for name, value in variables.items()}},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
