"""Training the 1.5B model by our trainer, each rank a process of this machine."""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

SEQUENCE = 4096
STEPS = 35
WARM_STEPS = 15
"""Not measured: compilation, and clocks that rise."""
END_SECONDS = 180


@dataclass(frozen=True, kw_only=True)
class Run:
    """Of one training. Tokens are counted per GPU."""

    tokens_per_second: float
    peak_reserved_gib: float


def train(gpus: int, micro_batch: int) -> Run:
    """Raises AssertionError with the output of rank 0 where a rank fails."""
    with tempfile.TemporaryDirectory() as folder:
        measured = _measured(Path(folder), gpus, _config(gpus, micro_batch))
    return Run(
        tokens_per_second=micro_batch
        * SEQUENCE
        / statistics.median(measured["step_seconds"][WARM_STEPS:]),
        peak_reserved_gib=measured["peak_reserved_bytes"] / 2**30,
    )


def _config(gpus: int, micro_batch: int) -> dict[str, Any]:
    return {
        "entrypoint": "tests.gpu.llama:build",
        "training": {
            "steps": STEPS,
            "globalBatchSize": micro_batch * gpus,
            "microBatchSize": micro_batch,
            "maxGradNorm": 1.0,
            "compile": {"mode": "default"},
        },
    }


def _measured(folder: Path, gpus: int, config: dict[str, Any]) -> dict[str, Any]:
    (folder / "config.json").write_text(json.dumps(config))
    port = _free_port()
    ranks = [_start(folder, rank, gpus, port) for rank in range(gpus)]
    deadline = monotonic() + END_SECONDS
    try:
        ends = [rank.wait(max(0.0, deadline - monotonic())) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert not any(ends), (folder / "output-0").read_text()
    measured: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return measured


def _start(folder: Path, rank: int, ranks: int, port: int) -> subprocess.Popen[bytes]:
    variables = {
        "KOPECK_CONFIG": folder / "config.json",
        "KOPECK_JOB_UID": "bench",
        "KOPECK_ATTEMPT": 0,
        "KOPECK_RENDEZVOUS_SECONDS": END_SECONDS,
        "KOPECK_HANG_SECONDS": END_SECONDS,
        "RANK": rank,
        "LOCAL_RANK": rank,
        "WORLD_SIZE": ranks,
        "LOCAL_WORLD_SIZE": ranks,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
    }
    with (folder / f"output-{rank}").open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.gpu.measured_rank", folder / "result.json"],
            env={**os.environ, **{name: str(value) for name, value in variables.items()}},
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port
